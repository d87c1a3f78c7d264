#include "mcp-frame/metadata_line.hpp"

#include <algorithm>

#include "mcp-frame/process_name.hpp"

namespace mcp_frame {
namespace {

enum class Match : std::uint8_t { no, so_far, whole };

// `in` contains the bytes after the NUL. Tests whether they start with the prefix and a colon.
Match match(std::string_view in, std::string_view prefix) noexcept {
  const std::size_t n = std::min(in.size(), prefix.size());
  if (in.substr(0, n) != prefix.substr(0, n)) return Match::no;
  if (in.size() <= prefix.size()) return Match::so_far;
  return in[prefix.size()] == ':' ? Match::whole : Match::no;
}

Metadata read_line(std::string_view in, std::size_t name_at) {
  const std::string_view bounded = in.substr(0, max_metadata_line);
  const std::size_t end = bounded.find('\n', name_at);
  if (end != bounded.npos) {
    return {Metadata::State::line, end + 1, in.substr(name_at, end - name_at)};
  }
  const bool full = in.size() >= max_metadata_line;
  return {full ? Metadata::State::too_long : Metadata::State::more, 0, {}};
}

}  // namespace

bool is_metadata_prefix(std::string_view prefix) noexcept {
  return !prefix.empty() && prefix.size() <= max_prefix &&
         std::all_of(prefix.begin(), prefix.end(), [](char c) {
           return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
         });
}

std::string metadata_line(std::string_view prefix, std::string_view process_name) {
  std::string line(1, '\0');
  return line.append(prefix).append(":").append(clean_process_name(process_name)).append("\n");
}

Metadata parse_metadata(std::string_view in, std::span<const std::string> more_prefixes) {
  if (in.empty()) return {};
  if (in.front() != '\0') return {Metadata::State::absent, 0, {}};
  bool so_far = false;
  std::size_t name_at = 0;
  const auto look_at = [&](std::string_view prefix) {
    const Match result = match(in.substr(1), prefix);
    so_far = so_far || result == Match::so_far;
    if (result == Match::whole) name_at = 1 + prefix.size() + 1;
  };
  for (const std::string_view prefix : known_prefixes) look_at(prefix);
  for (const std::string &prefix : more_prefixes) look_at(prefix);
  if (name_at > 0) return read_line(in, name_at);
  return {so_far ? Metadata::State::more : Metadata::State::absent, 0, {}};
}

}  // namespace mcp_frame
