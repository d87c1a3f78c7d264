// Writes a data table as Markdown (with a header row) or plain text (with tabs).
#pragma once

#include <string>
#include <vector>

namespace builtin_http {

class Table {
 public:
  static constexpr std::size_t max_columns = 100;  // extra cells are appended to the last column

  void begin_row();
  // `columns` and `rows` are the span of the cell, at least 1. The other positions of the span stay
  // empty.
  void cell(std::string text, unsigned columns, unsigned rows);

  // Returns one line per row, or an empty string if the table has no text.
  std::vector<std::string> lines(bool markdown) const;

 private:
  void fill();

  std::vector<std::vector<std::string>> rows_;
  std::vector<unsigned> taken_;  // for each column: number of rows still occupied by a cell above
};

}  // namespace builtin_http
