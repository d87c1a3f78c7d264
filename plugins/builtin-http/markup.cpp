#include "builtin-http/markup.hpp"

#include <algorithm>
#include <utility>

namespace builtin_http {
namespace {

// Containers that are nested more deeply than this get no markup, because their line prefixes could
// multiply the text size.
constexpr std::size_t max_containers = 12;

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f';
}

}  // namespace

// Returns the prefix of the next line, including the markers of list items. Sets *rest to the
// prefix of the following lines in the same paragraph. Each marker is returned only once.
std::string MarkupWriter::front(std::string *rest) {
  std::string out;
  for (std::size_t i = 0; i < containers_.size(); ++i) {
    Container &c = containers_[i];
    const bool shown = markdown_ && i < max_containers;
    if (shown && c.kind == Kind::quote) {
      out += "> ";
      *rest += "> ";
    } else if (shown) {
      out += c.marker.empty() ? std::string(c.width, ' ') : c.marker;
      rest->append(c.width, ' ');
    }
    c.marker.clear();
  }
  return out;
}

// Writes the pending line breaks and the line prefix.
void MarkupWriter::begin_line() {
  const bool first = out_.empty();
  if (wanted_ == 0 && !first) return;
  if (std::exchange(list_ended_, false) && !begins_item()) wanted_ = 2;
  if (wanted_ == 2 || begins_item()) close_marks();
  std::string rest;
  const std::string front = this->front(&rest);
  if (!first) out_ += '\n';
  if (!first && wanted_ == 2) {
    // The prefix of an empty line is the common prefix of the lines before and after it.
    const auto same = std::mismatch(rest.begin(), rest.end(), last_rest_.begin(), last_rest_.end());
    const std::string_view shared(rest.data(), static_cast<std::size_t>(same.first - rest.begin()));
    out_.append(shared.substr(0, shared.find_last_not_of(' ') + 1)).append("\n");
  }
  out_ += front;
  out_ += heading_;
  last_rest_ = std::move(rest);
  heading_.clear();
  wanted_ = 0;
  space_ = false;
  no_space_at_ = out_.size();
}

bool MarkupWriter::begins_item() const {
  return std::any_of(containers_.begin(), containers_.end(),
                     [](const Container &c) { return !c.marker.empty(); });
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
    if (!m.written && !m.ended) out_ += m.begin;
    m.written = true;
  }
}

// Closes all marks at the end of a paragraph, because Markdown marks cannot span paragraphs.
void MarkupWriter::close_marks() {
  for (auto m = marks_.rbegin(); m != marks_.rend(); ++m) {
    if (m->written && !m->ended) out_ += m->end;
    m->ended = m->ended || (m->written && m->begin == "[");
    m->written = false;
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
    // Writes empty lines immediately, because only one paragraph break can be pending at a time.
    begin_line();
    wanted_ = 1;
    t.remove_prefix(end + 1);
  }
}

void MarkupWriter::line(std::string_view t) {
  block(1);
  begin_line();
  out_ += t;
  block(1);
}

void MarkupWriter::rule() {
  block(2);
  if (markdown_) put("---");
  block(2);
}

void MarkupWriter::heading(int level) {
  block(2);
  if (markdown_) heading_ = std::string(static_cast<std::size_t>(level), '#') + " ";
}

bool MarkupWriter::in_list() const {
  return std::any_of(containers_.begin(), containers_.end(),
                     [](const Container &c) { return c.kind != Kind::quote; });
}

void MarkupWriter::end_list() {
  containers_.pop_back();
  list_ended_ = markdown_;
}

void MarkupWriter::item() {
  block(1);
  if (containers_.empty() || containers_.back().kind == Kind::quote) return;
  Container &list = containers_.back();
  list.marker = list.kind == Kind::bullets ? "- " : std::to_string(list.number++) + ". ";
  list.width = list.marker.size();
}

void MarkupWriter::end_item() {
  if (!containers_.empty()) containers_.back().marker.clear();
  block(1);
}

void MarkupWriter::begin_fence(std::string_view fence, std::string_view language) {
  block(2);
  if (!markdown_) return;
  put(fence);
  out_ += language;
  wanted_ = 1;
}

void MarkupWriter::end_fence(std::string_view fence) {
  if (markdown_) {
    wanted_ = 1;
    put(fence);
  }
  block(2);
}

void MarkupWriter::begin_mark(std::string_view begin, std::string_view end) {
  const bool inside =
      std::any_of(marks_.begin(), marks_.end(), [&](const Mark &m) { return m.begin == begin; });
  counted_.push_back(markdown_ && !inside);
  if (counted_.back()) marks_.push_back({std::string(begin), std::string(end)});
}

void MarkupWriter::end_mark() {
  const bool counted = counted_.back();
  counted_.pop_back();
  if (!counted) return;
  if (marks_.back().written && !marks_.back().ended) out_ += marks_.back().end;
  marks_.pop_back();
}

std::string MarkupWriter::take() {
  while (!out_.empty() && is_space(out_.back())) out_.pop_back();
  if (!out_.empty()) out_ += '\n';
  return std::move(out_);
}

}  // namespace builtin_http
