#include "builtin-http/markup.hpp"

#include <algorithm>

namespace builtin_http {
namespace {

// Deeper nesting is shown no deeper, so that a page cannot make its text many times longer.
constexpr int max_quotes = 4;
constexpr std::size_t max_indent = 8;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

}  // namespace

// Writes the line breaks that are due and what stands at the front of a line.
void MarkupWriter::begin_line() {
  const bool first = out_.empty();
  if (wanted_ == 0 && !first) return;
  const std::string quote = markdown_ ? std::string(2 * std::min(quotes_, max_quotes), ' ') : "";
  std::string front = quote;
  for (std::size_t i = 0; i < front.size(); i += 2) front[i] = '>';
  if (!first) {
    out_ += '\n';
    if (wanted_ == 2) out_ += front.substr(0, front.find_last_not_of(' ') + 1) + "\n";
  }
  out_ += front;
  if (markdown_ && lists_.size() > 1) {
    out_.append(2 * std::min(lists_.size() - 1, max_indent), ' ');
  }
  if (markdown_ && !lists_.empty() && pending_.empty()) out_ += "  ";
  out_ += pending_;
  pending_.clear();
  wanted_ = 0;
  space_ = false;
  no_space_at_ = out_.size();
}

void MarkupWriter::put(std::string_view t) {
  begin_line();
  if (space_ && out_.size() != no_space_at_) out_ += ' ';
  space_ = false;
  write_marks();
  out_ += t;
}

void MarkupWriter::write_marks() {
  for (Mark &m : marks_) {
    if (!m.written) out_ += m.text;
    m.written = true;
  }
}

void MarkupWriter::text(std::string_view t) {
  while (!t.empty()) {
    const auto word = std::find_if_not(t.begin(), t.end(), is_space);
    if (word != t.begin()) space_ = true;
    const auto end = std::find_if(word, t.end(), is_space);
    if (word != end) put({word, end});
    t.remove_prefix(static_cast<std::size_t>(end - t.begin()));
  }
}

void MarkupWriter::verbatim(std::string_view t) {
  while (!t.empty()) {
    const std::size_t end = std::min(t.find('\n'), t.size());
    std::string_view line = t.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    put(line);
    if (end == t.size()) break;
    // An empty line must be written, too: only one break is pending at a time.
    begin_line();
    wanted_ = 1;
    t.remove_prefix(end + 1);
  }
}

void MarkupWriter::rule() {
  block(2);
  if (markdown_) put("---");
  block(2);
}

void MarkupWriter::heading(int level) {
  block(2);
  if (markdown_) pending_ += std::string(static_cast<std::size_t>(level), '#') + " ";
}

void MarkupWriter::item() {
  block(1);
  if (!markdown_ || lists_.empty()) return;
  List &list = lists_.back();
  pending_ = list.ordered ? std::to_string(++list.number) + ". " : "- ";
}

void MarkupWriter::cell() {
  if (wanted_ == 0 && !out_.empty()) put(markdown_ ? " | " : "\t");
  no_space_at_ = out_.size();
}

void MarkupWriter::begin_fence() {
  block(2);
  if (!markdown_) return;
  put("```");
  wanted_ = 1;
}

void MarkupWriter::end_fence() {
  if (markdown_) {
    wanted_ = 1;
    put("```");
  }
  block(2);
}

void MarkupWriter::begin_mark(std::string_view mark) {
  const bool inside =
      std::any_of(marks_.begin(), marks_.end(), [&](const Mark &m) { return m.text == mark; });
  counted_.push_back(markdown_ && !inside);
  if (counted_.back()) marks_.push_back({mark, false});
}

void MarkupWriter::end_mark(std::string_view mark) {
  const bool counted = counted_.back();
  counted_.pop_back();
  if (!counted) return;
  if (marks_.back().written) out_ += mark;
  marks_.pop_back();
}

std::string MarkupWriter::take() {
  while (!out_.empty() && is_space(out_.back())) out_.pop_back();
  if (!out_.empty()) out_ += '\n';
  return std::move(out_);
}

}  // namespace builtin_http
