#include "builtin-http/grep.hpp"

#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <vector>

#include "tool-kit/results.hpp"

namespace builtin_http {
namespace {

constexpr std::size_t max_json_line = 300;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

void append_line(std::string *out, const char *marker, std::size_t number, std::string_view line) {
  out->append(marker).append(" ").append(std::to_string(number)).append(": ").append(line) += '\n';
}

void append_json(std::string *out, std::size_t number, std::string_view line) {
  if (!out->empty()) *out += ',';
  out->append("{\"line\":").append(std::to_string(number)).append(",\"text\":");
  bh::json::append_quoted(out, bh::cut_text(line, max_json_line));
  *out += '}';
}

}  // namespace

Matches find_matches(std::string_view text, const tool_kit::Pattern &pattern, std::size_t context,
                     std::size_t most, const std::atomic<bool> &cancelled) {
  const std::vector<std::string_view> lines = lines_of(text);
  const auto must_stop = [&] { return cancelled.load(std::memory_order_relaxed); };
  Matches found;
  for (std::size_t hit = 0; hit < lines.size(); ++hit) {
    if (must_stop()) break;
    if (!pattern.finds(lines[hit], must_stop)) continue;
    found.more = found.count == most || found.blocks.size() > max_grep_bytes;
    if (found.more) break;
    append_json(&found.json, hit + 1, lines[hit]);
    found.blocks += "--- Match " + std::to_string(++found.count) + " ---\n";
    const std::size_t begin = hit - std::min(hit, context);
    const std::size_t end = hit + 1 + std::min(lines.size() - hit - 1, context);
    for (std::size_t i = begin; i < end; ++i) {
      append_line(&found.blocks, i == hit ? ">>>" : "   ", i + 1, lines[i]);
    }
    found.blocks += '\n';
  }
  return found;
}

}  // namespace builtin_http
