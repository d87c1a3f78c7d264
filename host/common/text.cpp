#include "common/text.hpp"

#include <algorithm>

#include "bulkhead/cpp/text.hpp"

namespace bulkhead::program {

std::string printable(std::string_view text, bool keep_lines) {
  return bh::printable(text, keep_lines);
}

std::size_t columns(std::string_view text) noexcept {
  return bh::count_characters(text);
}

std::string first_line(std::string_view text, std::size_t max_columns) {
  while (!text.empty() && (text.front() == '\n' || text.front() == ' ')) text.remove_prefix(1);
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (columns(text) <= max_columns) return std::string(text);
  std::size_t end = 0, taken = 0;
  while (end < text.size()) {
    if (!bh::is_utf8_tail(text[end]) && ++taken >= max_columns) break;
    ++end;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count) + " " + std::string(noun) + (count == 1 ? "" : "s");
}

std::string duration(std::uint64_t milliseconds) {
  const auto two = [](std::uint64_t a, const char *ua, std::uint64_t b, const char *ub) {
    std::string out = std::to_string(a) + ua;
    if (b != 0) out += " " + std::to_string(b) + ub;
    return out;
  };
  const std::uint64_t s = milliseconds / 1000;
  if (s == 0) return std::to_string(milliseconds) + " ms";
  if (s < 60) return std::to_string(s) + " s";
  if (s < 3600) return two(s / 60, " min", s % 60, " s");
  if (s < 86'400) return two(s / 3600, " h", s % 3600 / 60, " min");
  return two(s / 86'400, " d", s % 86'400 / 3600, " h");
}

void Table::add(std::vector<std::string> row) {
  row.resize(headers_.size());
  rows_.push_back(std::move(row));
}

void Table::widen(std::vector<std::size_t> *width) const {
  for (const Row &row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      (*width)[i] = std::max((*width)[i], columns(row[i]));
    }
  }
}

// Appends a line of the table. Columns of width 0 are skipped.
void Table::append_line(std::string *out, const Row &cells, bool is_header,
                        const std::vector<std::size_t> &width) const {
  const std::size_t begin = out->size();
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (width[i] == 0) continue;
    const bool right = headers_[i].starts_with('>');
    const std::string_view cell = std::string_view(cells[i]).substr(is_header && right ? 1 : 0);
    const std::size_t head = columns(headers_[i]) - (right ? 1 : 0);
    const std::string gap(std::max(width[i], head) - columns(cell), ' ');
    if (out->size() > begin) *out += "  ";
    if (right) *out += gap;
    *out += cell;
    if (!right) *out += gap;
  }
  while (out->size() > begin && out->back() == ' ') out->pop_back();
  *out += '\n';
}

std::string Table::str(std::string_view indent) const {
  std::vector<std::size_t> width(headers_.size(), empty_ == Empty::keep ? 1 : 0);
  widen(&width);
  std::string out(indent);
  append_line(&out, headers_, true, width);
  for (const Row &row : rows_) {
    out += indent;
    append_line(&out, row, false, width);
  }
  return out;
}

std::string Table::take_rows() {
  const bool is_first = width_.empty();
  if (is_first) width_.assign(headers_.size(), 1);
  widen(&width_);
  std::string out;
  if (is_first) append_line(&out, headers_, true, width_);
  for (const Row &row : rows_) append_line(&out, row, false, width_);
  rows_.clear();
  return out;
}

}  // namespace bulkhead::program
