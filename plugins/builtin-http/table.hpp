// Writes a table of short texts as Markdown (with a head row) or plain text (tabs).
#pragma once

#include <string>
#include <vector>

namespace builtin_http {

class Table {
 public:
  static constexpr std::size_t max_columns = 100;  // further cells are appended to the last column

  void begin_row();
  // columns, rows: span of the cell, at least 1. The other spanned positions are empty cells.
  void cell(std::string text, unsigned columns, unsigned rows);

  // One line per row; empty if the table has no text.
  std::vector<std::string> lines(bool markdown) const;

 private:
  void fill();

  std::vector<std::vector<std::string>> rows_;
  std::vector<unsigned> taken_;  // for each column: remaining rows of a cell that spans rows
};

}  // namespace builtin_http
