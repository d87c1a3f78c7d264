// A table of short texts, as Markdown (with a head) or plain (tabs).
#pragma once

#include <string>
#include <vector>

namespace builtin_http {

class Table {
 public:
  static constexpr std::size_t max_columns = 100;  // further cells join the last one

  void begin_row();
  // columns, rows: that the cell takes, at least 1. Where it goes on there are empty cells.
  void cell(std::string text, unsigned columns, unsigned rows);

  // One line a row; empty if there is no text at all.
  std::vector<std::string> lines(bool markdown) const;

 private:
  void fill();

  std::vector<std::vector<std::string>> rows_;
  std::vector<unsigned> taken_;  // for each column: rows that a cell from above still takes
};

}  // namespace builtin_http
