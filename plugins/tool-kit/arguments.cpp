#include "tool-kit/arguments.hpp"

#include <bulkhead/cpp/text.hpp>

#include <rapidjson/document.h>

#include <algorithm>
#include <charconv>

namespace tool_kit {
namespace {

// Numbers are parsed as strings, so they can have any length and are not rounded.
constexpr unsigned parse_flags = rapidjson::kParseIterativeFlag |
                                 rapidjson::kParseValidateEncodingFlag |
                                 rapidjson::kParseNumbersAsStringsFlag;
constexpr std::size_t max_number = 64;
constexpr std::size_t max_shown = 100;  // bytes of a name that an error message shows

// A SAX handler that collects the scalars and string arrays in the outermost object. A DOM would
// not distinguish strings from numbers, because numbers are parsed as strings.
template <class Add>
class Collector : public rapidjson::BaseReaderHandler<rapidjson::UTF8<>, Collector<Add>> {
 public:
  explicit Collector(Add add) : add_(add) {}
  bool is_object() const { return is_object_; }

  bool Null() { return scalar('n', "null"); }
  bool Bool(bool b) { return scalar('b', b ? "true" : "false"); }
  bool RawNumber(const char *p, rapidjson::SizeType n, bool) { return scalar('#', {p, n}); }
  bool String(const char *p, rapidjson::SizeType n, bool) { return scalar('"', {p, n}); }
  bool Key(const char *p, rapidjson::SizeType n, bool) {
    if (depth_ == 1) name_.assign(p, n);
    return true;
  }
  bool StartObject() { return open(true); }
  bool EndObject(rapidjson::SizeType) { return close(); }
  bool StartArray() { return open(false); }
  bool EndArray(rapidjson::SizeType) { return close(); }

 private:
  bool scalar(char type, std::string_view text) {
    if (depth_ == 1 && is_object_) return add_(name_, type, text, {});
    only_texts_ = only_texts_ && type == '"';
    if (only_texts_ && depth_ == 2) texts_.emplace_back(text);
    return depth_ > 0;
  }
  bool open(bool object) {
    if (depth_ == 0) is_object_ = object;
    only_texts_ = depth_ == 1 && !object;
    texts_.clear();
    ++depth_;
    return is_object_;
  }
  bool close() {
    --depth_;
    return depth_ != 1 || add_(name_, only_texts_ ? '[' : '{', std::string_view(), texts_);
  }

  Add add_;
  std::string name_;
  unsigned depth_ = 0;
  bool is_object_ = false;
  bool only_texts_ = false;  // all elements of the current array so far are strings
  std::vector<std::string> texts_;
};

// Parses a non-negative integer in any form, such as 5.0 or 5e1. Returns false for fractions,
// negative numbers and numbers that are too large.
bool whole_number(std::string_view text, std::uint64_t *out) {
  const char *end = text.data() + text.size();
  const auto whole = std::from_chars(text.data(), end, *out);
  if (whole.ec == std::errc() && whole.ptr == end) return true;
  double value = 0;
  if (text.size() > max_number) return false;
  const auto real = std::from_chars(text.data(), end, value);
  if (real.ec != std::errc() || real.ptr != end || !(value >= 0 && value < 9e15)) return false;
  *out = static_cast<std::uint64_t>(value);
  return static_cast<double>(*out) == value;
}

}  // namespace

Arguments::Arguments(std::string_view json) {
  if (json.empty()) return;
  bool twice = false;
  const auto add = [this, &twice](const std::string &name, char type, std::string_view text,
                                  const std::vector<std::string> &texts) {
    twice = std::any_of(arguments_.begin(), arguments_.end(),
                        [&](const Argument &a) { return a.name == name; });
    const Type t = type == 'n'   ? Type::null
                   : type == 'b' ? Type::flag
                   : type == '#' ? Type::number
                   : type == '"' ? Type::text
                   : type == '[' ? Type::texts
                                 : Type::other;
    if (!twice) arguments_.push_back({name, t, std::string(text), texts});
    if (twice)
      wrong("the argument " + bh::in_quotes(name, max_shown) + " is specified more than once");
    if (arguments_.size() > 64) wrong("there are more than 64 arguments");
    return !twice && arguments_.size() <= 64;
  };
  Collector collector(add);
  rapidjson::MemoryStream stream(json.data(), json.size());
  rapidjson::Reader reader;
  const auto code = reader.Parse<parse_flags>(stream, collector).Code();
  if (code == rapidjson::kParseErrorNumberTooBig) {
    wrong("the arguments contain a number that is too large");
  } else if (code != rapidjson::kParseErrorNone || !collector.is_object()) {
    wrong("the arguments are not a valid JSON object");
  }
}

const Arguments::Argument *Arguments::find(std::string_view name) {
  asked_.emplace_back(name);
  for (const Argument &a : arguments_) {
    if (a.name == name) return a.type == Type::null ? nullptr : &a;
  }
  return nullptr;
}

void Arguments::wrong(std::string sentence) {
  if (problem_.empty()) problem_ = std::move(sentence);
}

std::string Arguments::text(std::string_view name, std::string_view fallback) {
  const Argument *a = find(name);
  if (a == nullptr) return std::string(fallback);
  if (a->type != Type::text)
    wrong("the argument " + bh::in_quotes(name, max_shown) + " must be a string");
  return a->text;
}

std::uint64_t Arguments::whole(std::string_view name, std::uint64_t fallback, std::uint64_t min,
                               std::uint64_t max) {
  const Argument *a = find(name);
  if (a == nullptr) return fallback;
  std::uint64_t value = 0;
  const bool good = a->type == Type::number && whole_number(a->text, &value);
  if (good && value >= min && value <= max) return value;
  wrong("the argument " + bh::in_quotes(name, max_shown) + " must be a whole number from " +
        std::to_string(min) + " to " + std::to_string(max));
  return fallback;
}

bool Arguments::flag(std::string_view name, bool fallback) {
  const Argument *a = find(name);
  if (a == nullptr) return fallback;
  if (a->type != Type::flag)
    wrong("the argument " + bh::in_quotes(name, max_shown) + " must be true or false");
  return a->text == "true";
}

std::string Arguments::choice(std::string_view name, const std::vector<std::string_view> &choices) {
  std::string value = text(name, choices.front());
  if (std::find(choices.begin(), choices.end(), value) != choices.end()) return value;
  std::string list;
  for (const std::string_view c : choices) list += (list.empty() ? "" : ", ") + std::string(c);
  wrong("the argument " + bh::in_quotes(name, max_shown) + " must be one of: " + list);
  return std::string(choices.front());
}

std::vector<std::string> Arguments::texts(std::string_view name) {
  const Argument *a = find(name);
  if (a == nullptr) return {};
  if (a->type != Type::texts)
    wrong("the argument " + bh::in_quotes(name, max_shown) + " must be an array of strings");
  return a->texts;
}

bool Arguments::has(std::string_view name) {
  return find(name) != nullptr;
}

const std::string &Arguments::problem() {
  for (const Argument &a : arguments_) {
    if (std::find(asked_.begin(), asked_.end(), a.name) != asked_.end()) continue;
    wrong("unknown argument " + bh::in_quotes(a.name, max_shown));
  }
  return problem_;
}

}  // namespace tool_kit
