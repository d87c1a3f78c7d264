#include "lexer.hpp"

#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <charconv>

namespace bulkhead::cel {

Fault fault_at(std::string_view source, std::size_t offset, std::string text) {
  Fault fault{.line = 1, .column = 1, .text = std::move(text)};
  for (const char c : source.substr(0, std::min(offset, source.size()))) {
    if (c == '\n') {
      ++fault.line;
      fault.column = 1;
    } else if (!bh::is_utf8_tail(c)) {
      ++fault.column;
    }
  }
  return fault;
}

namespace {

bool is_letter(char c) {
  return bh::is_letter(c) || c == '_';
}
}  // namespace

std::string Lexer::describe() const {
  if (token_ == Token::kEnd) return "the end of the expression";
  constexpr std::size_t longest = 40;
  std::string shown(text_.substr(0, longest));
  if (text_.size() > longest) shown += "...";
  return "'" + shown + "'";
}

bool Lexer::fail(std::size_t at, std::string why) {
  fault_ = fault_at(source_, at, std::move(why));
  return false;
}

void Lexer::skip_blanks() {
  while (at_ < source_.size()) {
    const char c = source_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f') {
      ++at_;
    } else if (source_.substr(at_, 2) == "//") {
      at_ = std::min(source_.find('\n', at_), source_.size());
    } else {
      return;
    }
  }
}

bool Lexer::next() {
  skip_blanks();
  position_ = at_;
  text_ = {};
  if (at_ == source_.size()) {
    token_ = Token::kEnd;
    return true;
  }
  const char c = source_[at_];
  if (digit_at(at_) || (c == '.' && digit_at(at_ + 1))) return number();
  if (const auto quoting = string_prefix()) return quoted(*quoting);
  if (is_letter(c)) return word();
  return sign();
}

bool Lexer::word() {
  std::size_t end = at_;
  while (end < source_.size() && (is_letter(source_[end]) || digit_at(end))) ++end;
  text_ = source_.substr(at_, end - at_);
  at_ = end;
  const bool keyword = text_ == "true" || text_ == "false" || text_ == "null" || text_ == "in";
  token_ = keyword ? Token::kKeyword : Token::kName;
  return true;
}

bool Lexer::number() {
  std::size_t end = at_;
  token_ = Token::kInt;
  if (source_[at_] == '0' && at_ + 1 < source_.size() &&
      (source_[at_ + 1] == 'x' || source_[at_ + 1] == 'X')) {
    end = at_ + 2;
    while (end < source_.size() && bh::hex_value(source_[end]) >= 0) ++end;
    if (end == at_ + 2) return fail(at_, "a hexadecimal number requires digits after 0x");
  } else {
    while (digit_at(end)) ++end;
    if (end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
      token_ = Token::kDouble;
      ++end;
      while (digit_at(end)) ++end;
    }
    if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
      std::size_t digits = end + 1;
      if (digits < source_.size() && (source_[digits] == '+' || source_[digits] == '-')) ++digits;
      if (!digit_at(digits)) return fail(end, "an exponent requires digits");
      token_ = Token::kDouble;
      while (digit_at(digits)) ++digits;
      end = digits;
    }
  }
  text_ = source_.substr(at_, end - at_);
  if (token_ == Token::kInt && end < source_.size() &&
      (source_[end] == 'u' || source_[end] == 'U')) {
    token_ = Token::kUint;
    ++end;
  }
  if (end < source_.size() && is_letter(source_[end])) {
    return fail(end, "a letter follows the number " + std::string(text_));
  }
  at_ = end;
  return true;
}

bool Lexer::sign() {
  static constexpr std::string_view pairs[] = {"&&", "||", "==", "!=", "<=", ">="};
  for (const std::string_view pair : pairs) {
    if (source_.substr(at_, 2) == pair) text_ = source_.substr(at_, 2);
  }
  if (text_.empty()) {
    if (std::string_view("!<>+-*/%?:.,()[]{}").find(source_[at_]) == std::string_view::npos) {
      const auto byte = static_cast<unsigned char>(source_[at_]);
      if (byte < 0x20 || byte > 0x7E) return fail(at_, "this character is not valid in CEL");
      return fail(at_, std::string("'") + source_[at_] + "' is not valid in CEL");
    }
    text_ = source_.substr(at_, 1);
  }
  token_ = Token::kSign;
  at_ += text_.size();
  return true;
}

// Parses the prefix of a string literal (r and b in either order) and advances to the quotation
// mark.
std::optional<Lexer::Quoting> Lexer::string_prefix() {
  Quoting quoting;
  std::size_t end = at_;
  for (; end < source_.size(); ++end) {
    const char c = source_[end];
    if (!quoting.raw && (c == 'r' || c == 'R')) {
      quoting.raw = true;
    } else if (!quoting.bytes && (c == 'b' || c == 'B')) {
      quoting.bytes = true;
    } else {
      break;
    }
  }
  if (end == source_.size() || (source_[end] != '"' && source_[end] != '\'')) return std::nullopt;
  at_ = end;
  return quoting;
}

bool Lexer::quoted(Quoting quoting) {
  const char mark = source_[at_];
  const std::string three(3, mark);
  const bool is_long = source_.substr(at_, 3) == three;
  const std::string_view end =
      is_long ? std::string_view(three) : std::string_view(three).substr(2);
  at_ += end.size();
  content_.clear();
  while (source_.substr(at_, end.size()) != end) {
    if (at_ >= source_.size()) return fail(position_, "the string is not terminated");
    const char c = source_[at_];
    if (!is_long && (c == '\n' || c == '\r')) {
      return fail(at_, "line break in a string; use \\n or triple quotes");
    }
    if (c == '\\' && !quoting.raw) {
      if (!escape(quoting.bytes)) return false;
    } else if (c == '\\' && at_ + 1 < source_.size() && source_[at_ + 1] != '\n') {
      // A raw string keeps the backslash, but an escaped quotation mark does not end the string.
      content_.append(source_.substr(at_, 2));
      at_ += 2;
    } else {
      content_.push_back(c);
      ++at_;
    }
  }
  at_ += end.size();
  text_ = source_.substr(position_, at_ - position_);
  token_ = quoting.bytes ? Token::kBytes : Token::kString;
  return true;
}

bool Lexer::escape(bool bytes) {
  static constexpr std::string_view letters = "abfnrtv\\?\"'`";
  static constexpr std::string_view meanings = "\a\b\f\n\r\t\v\\?\"'`";
  const std::size_t start = at_;
  const char c = start + 1 < source_.size() ? source_[start + 1] : '\0';
  if (const auto found = letters.find(c); c != '\0' && found != std::string_view::npos) {
    content_.push_back(meanings[found]);
    at_ += 2;
    return true;
  }
  at_ += 2;
  if (c == 'x' || c == 'X') return code_escape(2, 16, bytes, start);
  if (c == 'u' && !bytes) return code_escape(4, 16, bytes, start);
  if (c == 'U' && !bytes) return code_escape(8, 16, bytes, start);
  --at_;
  if (c >= '0' && c <= '3') return code_escape(3, 8, bytes, start);
  return fail(
      start,
      bytes
          ? "unknown escape; in bytes, known escapes are \\n \\r \\t \\a \\b \\f \\v \\\\ \\\" \\' "
            "\\xHH and \\OOO"
          : "unknown escape; known escapes are \\n \\r \\t \\a \\b \\f \\v \\\\ \\\" \\' \\xHH "
            "\\uHHHH \\UHHHHHHHH and \\OOO");
}

bool Lexer::code_escape(std::size_t digits, int base, bool bytes, std::size_t start) {
  std::uint32_t code = 0;
  const std::string_view text = source_.substr(std::min(at_, source_.size()), digits);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), code, base);
  if (text.size() != digits || error != std::errc() || end != text.data() + digits) {
    return fail(start, "this escape requires " + std::to_string(digits) +
                           (base == 16 ? " hexadecimal digits" : " octal digits"));
  }
  at_ += digits;
  if (bytes) {
    content_.push_back(static_cast<char>(code));
  } else if (code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) {
    return fail(start, "this escape is not a Unicode character");
  } else {
    bh::append_utf8(&content_, code);
  }
  return true;
}

}  // namespace bulkhead::cel
