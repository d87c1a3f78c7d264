// Writes a data table as Markdown (with a header row) or plain text (with tabs).
#pragma once

#include <string>
#include <vector>

namespace builtin_http {

class Table {
 public:
  static constexpr std::size_t max_columns = 100;  // additional cells join the last column

  void begin_row();
  // `columns` and `rows` are the span of the cell, at least 1. The other positions of the span are
  // empty cells.
  void cell(std::string text, unsigned columns, unsigned rows);

  // Returns one line per row, or nothing if the table has no text.
  std::vector<std::string> lines(bool markdown) const;

 private:
  void fill();

  std::vector<std::vector<std::string>> rows_;
  std::vector<unsigned> taken_;  // for each column, the remaining rows of a cell that spans rows
};

}  // namespace builtin_http
