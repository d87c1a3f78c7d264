// Text for terminals. Server text is untrusted, and terminals interpret control characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::program {

// Replaces control characters (C0, DEL, C1, direction marks) and invalid UTF-8 with '?'. If
// keep_lines is true, newlines and tabs are kept.
std::string printable(std::string_view text, bool keep_lines = false);

// Returns the first line, cut to max_columns with an ellipsis. Requires printable text.
std::string first_line(std::string_view text, std::size_t max_columns);

// Returns the width of a UTF-8 text, counting each code point as one column. This is sufficient to
// align names.
std::size_t columns(std::string_view text) noexcept;

// Returns, for example, "1 tool" or "2 tools".
std::string counted(std::uint64_t count, std::string_view noun);

// Formats a duration: "840 ms", "12 s", "3 min 12 s", "2 h 5 min", "4 d 3 h".
std::string duration(std::uint64_t milliseconds);

// A text table. Each column is as wide as its widest cell, with two spaces between columns; the
// last column is not padded. Columns whose header begins with '>' are right-aligned.
class Table {
 public:
  explicit Table(std::vector<std::string> headers) : headers_(std::move(headers)) {}
  void add(std::vector<std::string> row);  // missing cells are empty; surplus cells are ignored
  bool empty() const noexcept { return rows_.empty(); }
  // Returns the complete table. Empty columns are omitted.
  std::string str(std::string_view indent = "") const;
  // Returns the rows added since the last call, for a table that grows while it is printed. The
  // first call returns the headers as well. All columns are printed, and no column becomes
  // narrower.
  std::string take_rows();

 private:
  using Row = std::vector<std::string>;
  void append_line(std::string *out, const Row &cells, bool is_header,
                   const std::vector<std::size_t> &width) const;
  void widen(std::vector<std::size_t> *width) const;

  Row headers_;
  std::vector<Row> rows_;
  std::vector<std::size_t> width_;  // for take_rows(); empty until its first call
};

}  // namespace bulkhead::program
