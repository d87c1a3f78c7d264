#include "json_text.hpp"

#include <algorithm>
#include <vector>

namespace bulkhead::rules {
namespace {

constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                            rapidjson::kParseFullPrecisionFlag;
constexpr std::size_t kStackBytes = std::size_t{16} << 10;

bool has_twins(const rapidjson::Value &object) {
  constexpr rapidjson::SizeType few = 8;
  if (object.MemberCount() <= few) {
    for (auto a = object.MemberBegin(); a != object.MemberEnd(); ++a) {
      for (auto b = a + 1; b != object.MemberEnd(); ++b) {
        if (text_of(a->name) == text_of(b->name)) return true;
      }
    }
    return false;
  }
  std::vector<std::string_view> names;
  names.reserve(object.MemberCount());
  for (const auto &each : object.GetObject()) names.push_back(text_of(each.name));
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

const char *fault_of(const rapidjson::Value &value, unsigned depth) {
  if (!value.IsObject() && !value.IsArray()) return nullptr;
  if (depth == JsonText::kMaxDepth) return "nests too deeply";
  if (value.IsObject()) {
    if (has_twins(value)) return "an object has the same member twice";
    for (const auto &each : value.GetObject()) {
      if (const char *fault = fault_of(each.value, depth + 1)) return fault;
    }
    return nullptr;
  }
  for (const auto &each : value.GetArray()) {
    if (const char *fault = fault_of(each, depth + 1)) return fault;
  }
  return nullptr;
}

const rapidjson::Value nothing;

}  // namespace

JsonText::JsonText()
    : memory_(new char[kKeptBytes]),
      stack_memory_(new char[kStackBytes]),
      pool_(memory_.get(), kKeptBytes),
      stack_(stack_memory_.get(), kStackBytes) {}

const char *JsonText::parse(std::string_view text) {
  clear();
  document_.emplace(&pool_, 1024, &stack_);
  document_->Parse<kFlags>(text.data(), text.size());
  const char *fault = document_->HasParseError() ? "not valid JSON" : fault_of(*document_, 0);
  if (fault != nullptr) clear();
  return fault;
}

const rapidjson::Value &JsonText::value() const {
  return document_ ? static_cast<const rapidjson::Value &>(*document_) : nothing;
}

void JsonText::clear() {
  document_.reset();
  pool_.Clear();
  stack_.Clear();
}

const rapidjson::Value *member(const rapidjson::Value &object, std::string_view name) {
  if (!object.IsObject()) return nullptr;
  for (const auto &each : object.GetObject()) {
    if (text_of(each.name) == name) return &each.value;
  }
  return nullptr;
}

std::string_view text_of(const rapidjson::Value &string) {
  return {string.GetString(), string.GetStringLength()};
}

}  // namespace bulkhead::rules
