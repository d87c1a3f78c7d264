// Splits an expression into tokens.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fault.hpp"

namespace bulkhead::cel {

enum class Token : std::uint8_t {
  kEnd,
  kName,
  kKeyword,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,
  kSign
};

class Lexer {
 public:
  explicit Lexer(std::string_view source) : source_(source) {}

  // Moves to the next token. Returns false on error; fault() then returns the error.
  bool next();

  Token token() const { return token_; }
  // Returns the source text of the token, without the u of an unsigned number.
  std::string_view text() const { return text_; }
  const std::string &content() const { return content_; }  // unescaped string or bytes
  std::size_t position() const { return position_; }
  const Fault &fault() const { return fault_; }

  bool is_sign(std::string_view sign) const { return token_ == Token::kSign && text_ == sign; }
  bool is_keyword(std::string_view word) const {
    return token_ == Token::kKeyword && text_ == word;
  }
  std::string describe() const;  // the token in quotation marks, for error messages

 private:
  struct Quoting {
    bool raw = false;
    bool bytes = false;
  };

  void skip_blanks();
  bool number();
  bool word();
  bool sign();
  std::optional<Quoting> string_prefix();
  bool quoted(Quoting quoting);
  bool escape(bool bytes);
  bool code_escape(std::size_t digits, int base, bool bytes, std::size_t start);
  bool fail(std::size_t at, std::string why);
  bool digit_at(std::size_t at) const {
    return at < source_.size() && source_[at] >= '0' && source_[at] <= '9';
  }

  std::string_view source_;
  std::size_t at_ = 0;
  Token token_ = Token::kEnd;
  std::string_view text_;
  std::string content_;
  std::size_t position_ = 0;
  Fault fault_;
};

}  // namespace bulkhead::cel
