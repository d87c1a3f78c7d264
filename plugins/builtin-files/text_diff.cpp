#include "builtin-files/text_diff.hpp"

#include <algorithm>

namespace builtin_files {
namespace {

constexpr std::size_t context_lines = 3;

// A change that replaces complete lines of the old text.
struct LineChange {
  std::size_t begin, end;    // offsets in the old text
  std::size_t first, lines;  // first line (from 0) and line count in the old text
  std::string text;          // replacement text
  std::size_t new_lines;
};

std::size_t count_lines(std::string_view text) {
  const auto newlines = static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  return newlines + (text.empty() || text.back() == '\n' ? 0 : 1);
}

std::size_t line_begin(std::string_view text, std::size_t at) {
  return at == 0 ? 0 : text.rfind('\n', at - 1) + 1;  // npos + 1 is 0
}

std::size_t line_end(std::string_view text, std::size_t at) {
  const std::size_t newline = text.find('\n', at);
  return newline == text.npos ? text.size() : newline + 1;
}

// Returns the end of the last line that changes if `from` at offset `at` is replaced with `to`.
// `known` is the end of the line of an earlier place, or less: if `at` is in the same line, the
// line is not searched again.
std::size_t touched_end(std::string_view text, std::size_t at, std::string_view from,
                        std::string_view to, std::size_t known) {
  const std::size_t end = at + from.size();
  // If `from` ends at a line break that the replacement preserves, the next line does not change.
  if (from.ends_with('\n')) {
    if (to.ends_with('\n') || (to.empty() && line_begin(text, at) == at)) return end;
  }
  return end < known ? known : line_end(text, end);
}

std::vector<LineChange> changes_of(std::string_view text, const std::vector<std::size_t> &places,
                                   std::string_view from, std::string_view to) {
  std::vector<LineChange> out;
  std::size_t done = 0;  // offset in the old text up to which out.back().text is complete
  std::size_t line = 0;
  std::size_t counted = 0;
  const auto close = [&] {
    if (out.empty()) return;
    LineChange &c = out.back();
    c.text.append(text.substr(done, c.end - done));
    c.lines = count_lines(text.substr(c.begin, c.end - c.begin));
    c.new_lines = count_lines(c.text);
  };
  for (const std::size_t at : places) {
    if (out.empty() || at >= out.back().end) {
      close();
      const std::size_t begin = line_begin(text, at);
      line += static_cast<std::size_t>(
          std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                     text.begin() + static_cast<std::ptrdiff_t>(begin), '\n'));
      counted = done = begin;
      out.push_back({begin, begin, line, 0, {}, 0});
    }
    LineChange &c = out.back();
    c.text.append(text.substr(done, at - done)).append(to);
    done = at + from.size();
    c.end = std::max(c.end, touched_end(text, at, from, to, c.end));
  }
  close();
  return out;
}

void append_lines(std::string *out, char sign, std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = line_end(text, 0);
    *out += sign;
    out->append(text.substr(0, end));
    if (text[end - 1] != '\n') *out += "\n\\ No newline at end of file\n";
    text.remove_prefix(end);
  }
}

// Returns the offset at which the context lines before `at` begin. The result is never less than
// `not_before`.
std::size_t context_begin(std::string_view text, std::size_t at, std::size_t not_before) {
  for (std::size_t i = 0; i < context_lines && at > not_before; ++i) at = line_begin(text, at - 1);
  return std::max(at, not_before);
}

std::size_t context_end(std::string_view text, std::size_t at) {
  for (std::size_t i = 0; i < context_lines && at < text.size(); ++i) at = line_end(text, at);
  return at;
}

std::string range(std::size_t first, std::size_t lines) {
  return std::to_string(lines == 0 ? first : first + 1) + "," + std::to_string(lines);
}

// Appends one hunk for the changes [i, j), whose context lines touch or overlap. `shift` is the
// difference between new and old line numbers.
void append_hunk(std::string *out, std::string_view text, const std::vector<LineChange> &changes,
                 std::size_t i, std::size_t j, std::ptrdiff_t shift) {
  const std::size_t begin = context_begin(text, changes[i].begin, i == 0 ? 0 : changes[i - 1].end);
  const std::size_t end = context_end(text, changes[j - 1].end);
  std::string body;
  std::size_t at = begin;
  std::size_t old_lines = count_lines(text.substr(begin, end - begin));
  std::size_t new_lines = old_lines;
  for (std::size_t k = i; k < j; ++k) {
    const LineChange &c = changes[k];
    append_lines(&body, ' ', text.substr(at, c.begin - at));
    append_lines(&body, '-', text.substr(c.begin, c.end - c.begin));
    append_lines(&body, '+', c.text);
    new_lines += c.new_lines - c.lines;
    at = c.end;
  }
  append_lines(&body, ' ', text.substr(at, end - at));
  const std::size_t first =
      changes[i].first - count_lines(text.substr(begin, changes[i].begin - begin));
  const auto new_first = static_cast<std::size_t>(static_cast<std::ptrdiff_t>(first) + shift);
  *out += "@@ -" + range(first, old_lines) + " +" + range(new_first, new_lines) + " @@\n" + body;
}

}  // namespace

std::string replaced(std::string_view text, const std::vector<std::size_t> &places,
                     std::string_view from, std::string_view to) {
  std::string out;
  std::size_t done = 0;
  for (const std::size_t at : places) {
    out.append(text.substr(done, at - done)).append(to);
    done = at + from.size();
  }
  return out.append(text.substr(done));
}

std::string replacement_diff(std::string_view path, std::string_view text,
                             const std::vector<std::size_t> &places, std::string_view from,
                             std::string_view to, std::size_t max_bytes) {
  std::string out = "--- " + std::string(path) + "\n+++ " + std::string(path) + "\n";
  const std::vector<LineChange> changes = changes_of(text, places, from, to);
  std::ptrdiff_t shift = 0;
  for (std::size_t i = 0; i < changes.size();) {
    std::size_t j = i + 1;
    while (j < changes.size() &&
           changes[j].first - changes[j - 1].first - changes[j - 1].lines <= 2 * context_lines) {
      ++j;
    }
    append_hunk(&out, text, changes, i, j, shift);
    for (; i < j; ++i) {
      shift += static_cast<std::ptrdiff_t>(changes[i].new_lines) -
               static_cast<std::ptrdiff_t>(changes[i].lines);
    }
    if (out.size() < max_bytes) continue;
    out.resize(out.rfind('\n', max_bytes) + 1);
    return out + "(The diff was truncated.)\n";
  }
  return out;
}

}  // namespace builtin_files
