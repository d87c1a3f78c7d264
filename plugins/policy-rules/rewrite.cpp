#include "rewrite.hpp"

#include <rapidjson/reader.h>

#include <algorithm>
#include <bulkhead/cpp/json_writer.hpp>
#include <map>
#include <utility>

#include "json_text.hpp"

namespace bulkhead::rules {

// Receives parse events, applies the rewrite, and writes the output. A path component matches a
// member name or an array index. "*" matches any member or element.
class Rewriter {
 public:
  Rewriter(const Rewrite &rewrite, std::string *out)
      : rewrite_(rewrite), out_(*out), writer_(out) {}

  bool changed() const { return changed_; }

  bool Null() {
    return scalar([&] { writer_.value(nullptr); });
  }
  bool Bool(bool value) {
    return scalar([&] { writer_.value(value); });
  }
  bool Int(int) { return false; }  // the parser reports numbers as strings
  bool Uint(unsigned) { return false; }
  bool Int64(std::int64_t) { return false; }
  bool Uint64(std::uint64_t) { return false; }
  bool Double(double) { return false; }
  bool RawNumber(const char *text, rapidjson::SizeType size, bool) {
    return scalar([&] { writer_.value(bh::json::Raw{{text, size}}); });
  }
  bool String(const char *text, rapidjson::SizeType size, bool) {
    return scalar([&] { string({text, size}); });
  }
  bool Key(const char *text, rapidjson::SizeType size, bool) {
    if (skipping_ > 0) return true;
    levels_.back().name.assign(text, size);
    if (stripped()) {
      changed_ = true;
      strip_next_ = true;
      return true;
    }
    writer_.key({text, size});
    return true;
  }
  bool StartObject() {
    return begin(false, [&] { writer_.begin_object(); });
  }
  bool EndObject(rapidjson::SizeType) {
    return end([&] { writer_.end_object(); });
  }
  bool StartArray() {
    return begin(true, [&] { writer_.begin_array(); });
  }
  bool EndArray(rapidjson::SizeType) {
    return end([&] { writer_.end_array(); });
  }

 private:
  struct Level {
    bool array = false;
    std::size_t next = 0;  // index of the next array element
    std::string name;      // name of the current member
  };

  template <class F>
  bool scalar(F write) {
    if (skipping_ > 0) return true;
    step();
    if (std::exchange(strip_next_, false)) return true;
    write();
    return out_.size() <= Rewrite::kMaxOutput;
  }
  template <class F>
  bool begin(bool array, F write) {
    if (levels_.size() + skipping_ >= JsonText::kMaxDepth) return false;
    if (skipping_ > 0 || strip_next_) {
      if (skipping_ == 0) step();
      strip_next_ = false;
      ++skipping_;
      return true;
    }
    step();
    levels_.push_back({array, 0, {}});
    write();
    return true;
  }
  template <class F>
  bool end(F write) {
    if (skipping_ > 0) {
      --skipping_;
      return true;
    }
    levels_.pop_back();
    write();
    return true;
  }
  // If the current level is an array, advances to the next element.
  void step() {
    if (!levels_.empty() && levels_.back().array)
      levels_.back().name = std::to_string(levels_.back().next++);
  }

  // Returns true if the current value is at the path or below it. The components before `first` are
  // not compared.
  bool below(const Rewrite::Path &path, std::size_t first = 0) const {
    if (levels_.size() < path.size()) return false;
    for (std::size_t i = first; i < path.size(); ++i) {
      if (path[i] != "*" && path[i] != levels_[i].name) return false;
    }
    return true;
  }
  bool stripped() const {
    return std::any_of(rewrite_.strip_.begin(), rewrite_.strip_.end(), [&](const auto &path) {
      return levels_.size() == path.size() && below(path);
    });
  }
  // Returns true if the rewrite applies to strings at the current position.
  bool targeted() const {
    if (rewrite_.regex_ == nullptr || !below(rewrite_.path_, rewrite_.content_ ? 1 : 0))
      return false;
    return !rewrite_.content_ || std::find(kContentNames.begin(), kContentNames.end(),
                                           levels_.front().name) != kContentNames.end();
  }

  void string(std::string_view text) {
    std::string copy;
    if (targeted()) {
      copy = text;
      if (RE2::GlobalReplace(&copy, *rewrite_.regex_, rewrite_.value_) != 0) {
        changed_ = changed_ || text != copy;
        text = copy;
      }
    }
    writer_.value(text);
  }

  const Rewrite &rewrite_;
  std::string &out_;
  bh::json::Writer writer_;
  std::vector<Level> levels_;
  unsigned skipping_ = 0;  // nesting depth inside the removed member
  bool strip_next_ = false;
  bool changed_ = false;
};

namespace {

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

std::expected<std::vector<std::string>, std::string> path_of(std::string_view text) {
  std::vector<std::string> path;
  for (;;) {
    const std::size_t dot = text.find('.');
    path.emplace_back(text.substr(0, dot));
    if (path.back().empty()) return std::unexpected("a path must not contain empty names");
    if (path.size() > Rewrite::kMaxPath) return std::unexpected("a path can have at most 32 names");
    if (dot == std::string_view::npos) return path;
    text.remove_prefix(dot + 1);
  }
}

// Converts the name of a field to its path, relative to the arguments or the result.
std::expected<std::vector<std::string>, std::string> field_of(Event event, std::string_view field) {
  const bool request = event == Event::request;
  const std::string_view root = request ? "arguments" : "response";
  if (request && field == root) return std::vector<std::string>{};
  if (!request && field == "response.text") return std::vector<std::string>{};
  if (!field.starts_with(root) || field.size() <= root.size() || field[root.size()] != '.') {
    return std::unexpected(
        "\"" + std::string(field.substr(0, 80)) + "\" cannot be rewritten; fields of " +
        (request ? "mcp.request: arguments, arguments.PATH"
                 : "mcp.response: response.content, response.text, response.PATH"));
  }
  return path_of(field.substr(root.size() + 1));
}

// Converts each ${name} to an RE2 group reference such as \1, and escapes backslashes.
std::expected<std::string, std::string> value_of(std::string_view value, const RE2 &regex) {
  const std::map<std::string, int> &groups = regex.NamedCapturingGroups();
  std::string out;
  for (std::size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '\\') {
      out += "\\\\";
    } else if (value.substr(i, 2) == "${") {
      const std::size_t end = value.find('}', i);
      if (end == std::string_view::npos) return std::unexpected("${ without }");
      const std::string name(value.substr(i + 2, end - i - 2));
      const auto group = groups.find(name);
      if (group == groups.end()) {
        return std::unexpected("${" + name.substr(0, 80) + "} is not a named group of \"" +
                               regex.pattern() + "\": define it with (?P<name>...)");
      }
      if (group->second > 9) return std::unexpected("only the first nine groups can be used");
      out += "\\" + std::to_string(group->second);
      i = end;
    } else {
      out += value[i];
    }
  }
  return out;
}

}  // namespace

std::expected<Rewrite, std::string> Rewrite::replacing(Event event, std::string_view target,
                                                       std::string_view value) {
  const std::size_t sign = target.find("=~");
  const std::string_view quoted =
      sign == std::string_view::npos ? std::string_view{} : trimmed(target.substr(sign + 2));
  if (quoted.size() < 2 || quoted.front() != '"' || quoted.back() != '"') {
    return std::unexpected("rewrite_target must have the form FIELD =~ \"REGEX\"");
  }
  const std::string_view pattern = quoted.substr(1, quoted.size() - 2);
  if (pattern.empty() || pattern.size() > kMaxPattern || value.size() > kMaxValue) {
    return std::unexpected(
        "the regular expression must be 1 to 4096 bytes long, and the value at most 65536 bytes");
  }
  auto path = field_of(event, trimmed(target.substr(0, sign)));
  if (!path) return std::unexpected(std::move(path.error()));
  RE2::Options options;
  options.set_log_errors(false);
  options.set_max_mem(1 << 20);
  auto regex =
      std::make_unique<const RE2>(re2::StringPiece(pattern.data(), pattern.size()), options);
  if (!regex->ok()) {
    return std::unexpected("invalid regular expression in rewrite_target: " + regex->error());
  }
  auto replacement = value_of(value, *regex);
  if (!replacement) return std::unexpected("rewrite_value: " + replacement.error());
  Rewrite out;
  out.regex_ = std::move(regex);
  out.value_ = std::move(*replacement);
  out.path_ = std::move(*path);
  out.content_ =
      event == Event::response && !out.path_.empty() && out.path_.front() == kContentNames.front();
  return out;
}

std::expected<Rewrite, std::string> Rewrite::stripping(const std::vector<std::string> &paths) {
  Rewrite out;
  for (const std::string &text : paths) {
    auto path = path_of(text);
    if (!path) return std::unexpected("\"" + text + "\": " + path.error());
    out.strip_.push_back(std::move(*path));
  }
  return out;
}

Rewritten Rewrite::apply(std::string_view json) const {
  std::string out;
  Rewriter rewriter(*this, &out);
  rapidjson::Reader reader;
  rapidjson::MemoryStream stream(json.data(), json.size());
  rapidjson::EncodedInputStream<rapidjson::UTF8<>, rapidjson::MemoryStream> input(stream);
  const rapidjson::ParseResult parsed = reader.Parse < rapidjson::kParseIterativeFlag |
                                        rapidjson::kParseValidateEncodingFlag |
                                        rapidjson::kParseNumbersAsStringsFlag > (input, rewriter);
  if (parsed.IsError()) return {};
  return {std::move(out), rewriter.changed()};
}

}  // namespace bulkhead::rules
