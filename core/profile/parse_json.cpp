// Parses JSON with comments and trailing commas, as in VS Code files. RapidJSON's reader is used to
// build a tree of values with their locations.
#include <algorithm>
#include <tuple>

#include "profile/parse.hpp"
#include "rapidjson/error/en.h"
#include "rapidjson/reader.h"

namespace bulkhead::profiles {

namespace {

// A stream whose position can be read while RapidJSON is parsing. RapidJSON's own string stream is
// unsuitable because RapidJSON copies it.
class Stream {
 public:
  using Ch = char;
  explicit Stream(std::string_view text) : text_(text) {}
  Ch Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  Ch Take() { return at_ < text_.size() ? text_[at_++] : '\0'; }
  std::size_t Tell() const { return at_; }
  // The reader's templates require these functions but call them only for in-situ parsing.
  Ch *PutBegin() { return nullptr; }
  void Put(Ch) {}
  void Flush() {}
  std::size_t PutEnd(Ch *) { return 0; }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

// Returns the end of the comment that begins at `i`, or `i` if there is none.
std::size_t skip_comment(std::string_view text, std::size_t i) {
  if (text.substr(i, 2) == "//") {
    const std::size_t end = text.find('\n', i);
    return end == std::string_view::npos ? text.size() : end;
  }
  if (text.substr(i, 2) == "/*") {
    const std::size_t end = text.find("*/", i + 2);
    return end == std::string_view::npos ? text.size() : end + 2;
  }
  return i;
}

// Converts offsets to locations. Offsets must be passed in increasing order.
class Lines {
 public:
  Lines(std::string_view text, std::uint16_t layer) : text_(text), layer_(layer) {}
  Place place(std::size_t offset) {
    offset = std::min(offset, text_.size());
    for (; at_ < offset; ++at_) {
      if (text_[at_] != '\n') continue;
      ++line_;
      start_ = at_ + 1;
    }
    return {layer_, line_, static_cast<std::uint32_t>(offset - start_ + 1)};
  }

 private:
  std::string_view text_;
  std::uint16_t layer_;
  std::size_t at_ = 0, start_ = 0;
  std::uint32_t line_ = 1;
};

class Handler {
 public:
  using Ch = char;
  Handler(std::string_view text, std::uint16_t layer, const Stream &stream,
          const ParseOptions &options, Node *root)
      : text_(text), stream_(stream), lines_(text, layer), options_(options), root_(root) {}

  bool Null() { return add(Kind::null); }
  bool Bool(bool value) {
    if (!add(Kind::boolean)) return false;
    last_->flag = value;
    return true;
  }
  bool Int(int) { return number(); }
  bool Uint(unsigned) { return number(); }
  bool Int64(std::int64_t) { return number(); }
  bool Uint64(std::uint64_t) { return number(); }
  bool Double(double) { return number(); }
  bool RawNumber(const char *, rapidjson::SizeType, bool) { return number(); }
  bool String(const char *text, rapidjson::SizeType n, bool) {
    if (!add(Kind::string)) return false;
    last_->text.assign(text, n);
    return true;
  }
  bool StartObject() { return add(Kind::table) && enter(); }
  bool StartArray() { return add(Kind::array) && enter(); }
  bool Key(const char *text, rapidjson::SizeType n, bool) {
    Member &member = open_.back()->members.emplace_back();
    member.place = lines_.place(token_start());
    member.name.assign(text, n);
    end_ = stream_.Tell();
    return true;
  }
  bool EndObject(rapidjson::SizeType) {
    Node &table = *open_.back();
    leave();
    return options_.duplicates ? keep_last(table) : refuse_duplicates(table);
  }
  bool EndArray(rapidjson::SizeType) {
    leave();
    return true;
  }

  const std::string &error() const noexcept { return error_; }
  const std::string &code() const noexcept { return code_; }
  const Place &error_place() const noexcept { return error_place_; }

 private:
  // Returns the start of the token that was read last. Only white space, comments and punctuation
  // can separate it from the previous token.
  std::size_t token_start() const {
    std::size_t i = end_;
    while (i < text_.size()) {
      if (std::string_view(" \t\r\n,:").find(text_[i]) != std::string_view::npos) {
        ++i;
        continue;
      }
      const std::size_t next = skip_comment(text_, i);
      if (next == i) break;
      i = next;
    }
    return i;
  }

  bool refuse(const Place &place, std::string what, std::string_view code) {
    error_ = std::move(what);
    error_place_ = place;
    code_ = code;
    return false;
  }

  bool add(Kind kind) {
    start_ = token_start();
    end_ = stream_.Tell();
    const Place place = lines_.place(start_);
    if (++count_ > options_.max_values)
      return refuse(place, "more than " + std::to_string(options_.max_values) + " values",
                    "too_large");
    if (open_.empty()) {
      last_ = root_;
    } else if (open_.back()->kind == Kind::array) {
      last_ = &open_.back()->items.emplace_back();
    } else {
      last_ = &open_.back()->members.back().value;
    }
    last_->kind = kind;
    last_->place = place;
    return true;
  }

  bool number() {
    if (!add(Kind::number)) return false;
    last_->text = text_.substr(start_, end_ - start_);
    return true;
  }

  bool enter() {
    if (open_.size() >= kProfileDepth)
      return refuse(last_->place,
                    "more than " + std::to_string(kProfileDepth) + " nested objects and arrays",
                    "too_large");
    open_.push_back(last_);
    end_ = start_ + 1;  // the reader has not yet consumed the bracket
    return true;
  }

  void leave() {
    open_.pop_back();
    end_ = token_start() + 1;
  }

  static std::vector<const Member *> sorted(const Node &table) {
    std::vector<const Member *> out;
    for (const Member &member : table.members) out.push_back(&member);
    std::sort(out.begin(), out.end(), [](const Member *a, const Member *b) {
      return std::tie(a->name, a) < std::tie(b->name, b);
    });
    return out;
  }

  bool refuse_duplicates(const Node &table) {
    const auto order = sorted(table);
    for (std::size_t i = 1; i < order.size(); ++i) {
      if (order[i]->name != order[i - 1]->name) continue;
      return refuse(order[i]->place,
                    "the name " + in_quotes(order[i]->name) +
                        " is used twice in the same object, first on line " +
                        std::to_string(order[i - 1]->place.line),
                    kInvalidSchema);
    }
    return true;
  }

  bool keep_last(Node &table) {
    const auto order = sorted(table);
    std::vector<const Member *> stale;
    for (std::size_t i = 1; i < order.size(); ++i)
      if (order[i]->name == order[i - 1]->name) stale.push_back(order[i - 1]);
    if (stale.empty()) return true;
    std::sort(stale.begin(), stale.end());
    std::vector<Member> kept;
    for (Member &member : table.members)
      if (!std::binary_search(stale.begin(), stale.end(), &member))
        kept.push_back(std::move(member));
    table.members = std::move(kept);
    return true;
  }

  std::string_view text_;
  const Stream &stream_;
  Lines lines_;
  const ParseOptions &options_;
  Node *root_;
  Node *last_ = nullptr;
  std::vector<Node *> open_;
  std::size_t start_ = 0, end_ = 0, count_ = 0;
  std::string error_, code_;
  Place error_place_;
};

// Returns the offset of the first number that RapidJSON 1.1.0 must not parse, or npos. A long
// exponent triggers CVE-2024-38517, and long digit sequences are slow to parse.
std::size_t oversized_number(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      ++i;
      continue;
    }
    if (const std::size_t next = skip_comment(text, i); next != i) {
      i = next;
      continue;
    }
    const std::size_t start = i;
    while (i < text.size() &&
           std::string_view("0123456789+-.eE").find(text[i]) != std::string_view::npos)
      ++i;
    const std::string_view token = text.substr(start, i - start);
    const std::size_t exponent = token.find_last_of("eE");
    const std::size_t digits =
        exponent == std::string_view::npos
            ? 0
            : token.size() - std::min(token.size(), token.find_first_not_of("eE+-", exponent));
    if (token.size() > 64 || digits > 4) return start;
    if (i == start) ++i;
  }
  return std::string_view::npos;
}

constexpr unsigned kFlags = rapidjson::kParseIterativeFlag | rapidjson::kParseValidateEncodingFlag |
                            rapidjson::kParseCommentsFlag | rapidjson::kParseTrailingCommasFlag;

}  // namespace

bool parse_json(const ProfileLayer &layer, std::uint16_t index, const ParseOptions &options,
                Node *out, Diagnostics &diagnostics) {
  std::string_view text = layer.text;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // byte order mark
  const auto report = [&](std::size_t offset, const std::string &what) {
    diagnostics.error(Lines(text, index).place(offset), "", "not valid JSON: " + what,
                      "invalid_json");
    return false;
  };
  if (const std::size_t at = oversized_number(text); at != std::string_view::npos)
    return report(at,
                  "a number is longer than 64 characters, or its exponent has more than 4 digits");
  Stream stream(text);
  Handler handler(text, index, stream, options, out);
  rapidjson::Reader reader;
  const rapidjson::ParseResult result = reader.Parse<kFlags>(stream, handler);
  if (!handler.error().empty()) {
    diagnostics.error(handler.error_place(), "", handler.error(), handler.code());
    return false;
  }
  if (!result) return report(result.Offset(), rapidjson::GetParseError_En(result.Code()));
  return true;
}

}  // namespace bulkhead::profiles
