#include "match_condition.hpp"

#include <optional>
#include <utility>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead::rules {
namespace {

constexpr unsigned kMaxDepth = 64;
constexpr std::size_t kMaxText = std::size_t{16} << 10;

// A field and its CEL equivalent. `there` is a CEL condition that tests whether the call has the
// field; it is empty if every call has the field.
struct Field {
  std::string_view name, cel, there;
  bool response = false;
};
constexpr Field kFields[] = {
    {"mcp.method", "mcp.request.method", ""},
    {"mcp.request.method", "mcp.request.method", ""},
    {"mcp.server.name", "mcp.request.server_name", ""},
    {"mcp.tool_call.name", "mcp.request.tool_name", "mcp.request.tool_name != ''"},
    {"mcp.request.arguments", "mcp.request.arguments_text", "mcp.request.arguments_text != ''"},
    {"mcp.response.content", "mcp.response.text", "mcp.response.text != ''", true},
    {"mcp.valid", "'true'", ""},
    {"mcp.event.valid", "'true'", ""},
    {"mcp.server.name.valid", "'true'", ""},
};

// Returns a CEL string literal for these bytes.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\\' || c == '\'') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else {
      out += c;
    }
  }
  return out += '\'';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  std::expected<MatchCondition, std::string> run() {
    if (text_.size() > kMaxText)
      return std::unexpected("1: a condition must be at most 16384 bytes long");
    std::string cel = any(0);
    space();
    if (!fault_ && at_ < text_.size()) fail("expected &&, || or the end");
    if (fault_) return std::unexpected(std::move(*fault_));
    return MatchCondition{std::move(cel), response_ ? Event::response : Event::request};
  }

 private:
  std::string fail(std::string_view what) {
    if (!fault_) fault_ = std::to_string(at_ + 1) + ": " + std::string(what);
    return {};
  }
  void space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
  }
  bool take(std::string_view token) {
    space();
    if (!text_.substr(at_).starts_with(token)) return false;
    at_ += token.size();
    return true;
  }
  void need(std::string_view token) {
    if (!take(token)) fail("expected '" + std::string(token) + "'");
  }

  std::string any(unsigned depth) {
    std::string out = all(depth);
    while (!fault_ && take("||")) out += " || " + all(depth);
    return out;
  }
  std::string all(unsigned depth) {
    std::string out = one(depth);
    while (!fault_ && take("&&")) out += " && " + one(depth);
    return out;
  }
  std::string one(unsigned depth) {
    if (depth == kMaxDepth) return fail("more than 64 nested brackets");
    if (take("(")) {
      std::string out = "(" + any(depth + 1) + ")";
      need(")");
      return out;
    }
    space();
    if (at_ < text_.size() && text_[at_] == '!') return fail("negation is not supported; use !=");
    if (take("has(")) {
      const Field *field = this->field(word());
      need(")");
      if (fault_) return {};
      return field->there.empty() ? "true" : "(" + std::string(field->there) + ")";
    }
    return atom();
  }

  std::string atom() {
    const std::size_t begin = (space(), at_);
    const std::string_view path = word();
    space();
    if (text_.substr(at_).starts_with("==") || text_.substr(at_).starts_with("!=")) {
      const std::string op(text_.substr(at_, 2));
      const Field *field = this->field(path);
      at_ += 2;
      return said(field, op, literal());
    }
    const std::size_t dot = path.rfind('.');
    if (dot == std::string_view::npos || !take("("))
      return fail("expected ==, != or a function such as .contains(\"...\")");
    const std::string_view function = path.substr(dot + 1);
    const std::size_t here = std::exchange(at_, begin);
    const Field *field = this->field(path.substr(0, dot));
    at_ = here;
    if (function == "contains_pii") {
      need(")");
      return fault_ ? ""
                    : guarded(*field,
                              std::string(field->cel) + ".matches('@|[0-9]{3}-[0-9]{2}-[0-9]{4}')");
    }
    if (function != "contains" && function != "startsWith" && function != "endsWith" &&
        function != "matches") {
      return fail("known functions are contains, startsWith, endsWith, matches and contains_pii");
    }
    const std::string argument = literal();
    need(")");
    if (fault_) return {};
    return guarded(*field,
                   std::string(field->cel) + "." + std::string(function) + "(" + argument + ")");
  }

  std::string said(const Field *field, const std::string &op, const std::string &literal) const {
    if (fault_) return {};
    std::string plain = std::string(field->cel) + " " + op + " " + literal;
    // No presence test is needed, because a missing field is an empty string and thus differs from
    // all other literals.
    if (op == "==" && literal != "''") return plain;
    return guarded(*field, plain);
  }
  static std::string guarded(const Field &field, const std::string &condition) {
    if (field.there.empty()) return condition;
    return "(" + std::string(field.there) + " && " + condition + ")";
  }

  std::string_view word() {
    space();
    const std::size_t begin = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const bool letter = bh::is_letter_or_digit(c) || c == '_' || c == '.';
      if (!letter) break;
      ++at_;
    }
    if (begin == at_) fail("expected a field");
    return text_.substr(begin, at_ - begin);
  }

  const Field *field(std::string_view name) {
    for (const Field &known : kFields) {
      if (known.name != name) continue;
      response_ = response_ || known.response;
      return &known;
    }
    if (name == "mcp.tool_list" || name == "mcp.request.id") {
      fail(std::string(name) + " is never set by Bulkhead, so the rule would never match");
    } else {
      fail("unknown field \"" + std::string(name.substr(0, 80)) +
           "\"; known fields: mcp.method, mcp.server.name, mcp.tool_call.name, "
           "mcp.request.method, mcp.request.arguments, mcp.response.content, mcp.valid");
    }
    return nullptr;
  }

  // Parses a string literal, which ends at the next quotation mark of the same type.
  std::string literal() {
    space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '"' && quote != '\'') return fail("expected a string");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) return fail("this string is not terminated");
    const std::string_view content = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return quoted(content);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool response_ = false;
  std::optional<std::string> fault_;
};

}  // namespace

std::expected<MatchCondition, std::string> match_condition(std::string_view text) {
  return Parser(text).run();
}

}  // namespace bulkhead::rules
