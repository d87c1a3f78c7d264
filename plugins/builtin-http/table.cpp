#include "builtin-http/table.hpp"

#include <algorithm>

namespace builtin_http {
namespace {

// Joins the lines of a cell into one line and escapes column separators.
std::string in_cell(const std::string &text, bool markdown) {
  std::string out;
  for (const char c : text) {
    if (markdown && c == '|') out += '\\';
    if (c != '\n') {
      out += c;
    } else if (!out.ends_with(' ')) {
      out += ' ';
    }
  }
  return out;
}

std::string line_of(const std::vector<std::string> &row, std::size_t columns, bool markdown) {
  std::string out = markdown ? "|" : "";
  for (std::size_t i = 0; i < columns; ++i) {
    const std::string cell = i < row.size() ? in_cell(row[i], markdown) : std::string();
    if (markdown) {
      out += cell.empty() ? " |" : " " + cell + " |";
    } else {
      out += (i == 0 ? "" : "\t") + cell;
    }
  }
  return out.substr(0, out.find_last_not_of('\t') + 1);
}

}  // namespace

void Table::begin_row() {
  rows_.emplace_back();
}

// Adds empty cells for columns that are occupied by cells from rows above.
void Table::fill() {
  std::vector<std::string> &row = rows_.back();
  while (row.size() < taken_.size() && taken_[row.size()] > 0) {
    --taken_[row.size()];
    row.emplace_back();
  }
}

void Table::cell(std::string text, unsigned columns, unsigned rows) {
  if (rows_.empty()) begin_row();
  fill();
  std::vector<std::string> &row = rows_.back();
  for (unsigned i = 0; i < columns && row.size() < max_columns; ++i) {
    if (taken_.size() <= row.size()) taken_.resize(row.size() + 1);
    taken_[row.size()] = rows - 1;
    row.push_back(i == 0 ? std::move(text) : std::string());
    if (i == 0) text.clear();
  }
  if (!text.empty()) row.back() += " " + text;
}

std::vector<std::string> Table::lines(bool markdown) const {
  std::vector<std::string> out;
  std::size_t columns = 0;
  for (const auto &row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (!row[i].empty()) columns = std::max(columns, i + 1);
    }
  }
  for (const auto &row : rows_) {
    const bool empty = std::all_of(row.begin(), row.end(), [](const auto &c) { return c.empty(); });
    if (empty || columns == 0) continue;
    out.push_back(line_of(row, columns, markdown));
    if (!markdown || out.size() > 1) continue;
    std::string rule = "|";
    for (std::size_t i = 0; i < columns; ++i) rule += " --- |";
    out.push_back(rule);
  }
  return out;
}

}  // namespace builtin_http
