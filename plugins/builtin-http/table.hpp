// Formats a data table as Markdown (with a header row) or as plain text (with tabs).
#pragma once

#include <string>
#include <vector>

namespace builtin_http {

class Table {
 public:
  static constexpr std::size_t max_columns = 100;  // more cells are appended to the last cell

  void begin_row();
  // Adds a cell that spans `columns` and `rows`, both at least 1. The text is put in the first
  // position; the other positions stay empty.
  void cell(std::string text, unsigned columns, unsigned rows);

  // Returns one line per row that has text. In Markdown, a separator line follows the first row.
  std::vector<std::string> lines(bool markdown) const;

 private:
  void fill();

  std::vector<std::vector<std::string>> rows_;
  std::vector<unsigned> taken_;  // per column: number of further rows that a cell occupies
};

}  // namespace builtin_http
