// Formats text for terminals. Text from servers must be passed through printable(), because it is
// untrusted and terminals interpret control characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::program {

// Replaces control characters (C0, DEL, C1), line separators, characters that change the text
// direction, and invalid UTF-8 with '?'. If keep_lines is true, newlines and tabs are kept.
std::string printable(std::string_view text, bool keep_lines = false);

// Returns the first line that is not blank, without surrounding spaces. If it is longer than
// max_columns, it is truncated and ends with an ellipsis. `text` must be printable.
std::string first_line(std::string_view text, std::size_t max_columns);

// Returns the display width of UTF-8 text. Each code point counts as one column, which is accurate
// enough for aligning names.
std::size_t columns(std::string_view text) noexcept;

// Returns the count and the noun, with a plural "s" if needed: "1 tool", "2 tools".
std::string counted(std::uint64_t count, std::string_view noun);

// Formats a duration with one or two units: "840 ms", "12 s", "3 min 12 s", "2 h 5 min", "4 d 3 h".
std::string duration(std::uint64_t milliseconds);

// Formats a table. Columns are separated by two spaces, and each is as wide as its widest cell; the
// last column is not padded. A column is right-aligned if its header begins with '>'.
class Table {
 public:
  enum class Empty : std::uint8_t { drop, keep };  // columns without a value in any row
  explicit Table(std::vector<std::string> headers, Empty empty = Empty::drop)
      : headers_(std::move(headers)), empty_(empty) {}
  void add(std::vector<std::string> row);  // missing cells are empty; surplus cells are ignored
  bool empty() const noexcept { return rows_.empty(); }
  // Returns the whole table, without its empty columns unless they are kept.
  std::string str(std::string_view indent = "") const;
  // Returns the rows that were added since the last call, for a table that is printed while it
  // grows. The first call also returns the headers. Empty columns are printed, and columns can only
  // become wider.
  std::string take_rows();

 private:
  using Row = std::vector<std::string>;
  void append_line(std::string *out, const Row &cells, bool is_header,
                   const std::vector<std::size_t> &width) const;
  void widen(std::vector<std::size_t> *width) const;

  Row headers_;
  const Empty empty_;
  std::vector<Row> rows_;
  std::vector<std::size_t> width_;  // for take_rows(); empty until its first call
};

}  // namespace bulkhead::program
