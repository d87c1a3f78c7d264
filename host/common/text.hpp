// Text for people: what servers say is untrusted, and a terminal obeys control characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::program {

// Control characters (C0, DEL, C1) become '?', invalid UTF-8 becomes '?'. With keep_lines, new
// lines and tabs stay.
std::string printable(std::string_view text, bool keep_lines = false);

// The first line, cut to max_columns with an ellipsis. Expects printable text.
std::string first_line(std::string_view text, std::size_t max_columns);

// Columns a UTF-8 text takes, counting a code point as one: good enough to align names.
std::size_t columns(std::string_view text) noexcept;

// "840 ms", "12 s", "3 min 12 s", "2 h 5 min", "4 d 3 h".
std::string duration(std::uint64_t milliseconds);

// Rows under headers, each column as wide as its widest cell, two blanks between; the last column
// is not padded. Columns whose header starts with '>' are aligned to the right. A column without
// any content is left out.
class Table {
 public:
  explicit Table(std::vector<std::string> headers) : headers_(std::move(headers)) {}
  void add(std::vector<std::string> row);  // missing cells are empty, surplus ones ignored
  bool empty() const noexcept { return rows_.empty(); }
  std::string str(std::string_view indent = "") const;

 private:
  std::vector<std::string> headers_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace bulkhead::program
