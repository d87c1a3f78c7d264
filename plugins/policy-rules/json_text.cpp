// With RAPIDJSON_SSE2, RapidJSON scans strings 16 bytes at a time and reads beyond the end of the
// text. Only the buffer in this file has the necessary padding, so only this file defines the
// macro.
#ifdef __SSE2__
#define RAPIDJSON_SSE2
#endif
#include "json_text.hpp"

#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <cstring>

namespace bulkhead::rules {
namespace {

constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseFullPrecisionFlag;
constexpr std::size_t kReadAhead = 32;  // zero bytes after the text, as padding
constexpr std::size_t kStackBytes = std::size_t{16} << 10;

bool has_duplicates(const rapidjson::Value &object) {
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
  if (depth == JsonText::kMaxDepth) return "nested too deeply";
  if (value.IsObject()) {
    if (has_duplicates(value)) return "an object has a duplicate member";
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

// Returns an upper bound on the number of values in a JSON document, by counting the commas and
// opening brackets outside strings.
std::size_t count_values(std::string_view json) noexcept {
  std::size_t count = 1;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    count += c == ',' || c == '[' || c == '{';
    if (c != '"') continue;
    for (++i; i < json.size() && json[i] != '"'; ++i) i += json[i] == '\\';
  }
  return count;
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
  // The parser stops at a NUL byte and does not validate UTF-8, so both are checked first.
  const bool whole = text.empty() || std::memchr(text.data(), 0, text.size()) == nullptr;
  if (!whole || !bh::is_utf8(text)) return "not valid JSON";
  // Each value takes at least two bytes, including a comma, so short texts cannot exceed the limit.
  if (text.size() > 2 * kMaxValues && count_values(text) > kMaxValues)
    return "more than 8,388,608 values";
  text_.resize(text.size() + kReadAhead);
  if (!text.empty()) std::memcpy(text_.data(), text.data(), text.size());
  std::memset(text_.data() + text.size(), 0, kReadAhead);
  document_.emplace(&pool_, 1024, &stack_);
  document_->ParseInsitu<kFlags>(text_.data());
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
  if (text_.capacity() > kKeptBytes) text_ = {};
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
