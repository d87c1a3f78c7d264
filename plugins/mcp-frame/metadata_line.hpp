// Writes and parses the metadata line at the start of a connection: NUL, "CAPSEM_META:", a process
// name, newline. This name is for diagnostics only; the process name in each frame is
// authoritative.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mcp_frame {

// Prefixes that are always accepted. The first one is written by default; it is the prefix used by
// the program that defines the format.
inline constexpr std::string_view known_prefixes[] = {"CAPSEM_META", "BULKHEAD_META"};
inline constexpr std::size_t max_prefix = 32;
inline constexpr std::size_t max_metadata_line = 512;  // including NUL and newline

// Returns true if the prefix has 1 to max_prefix characters, all of them A-Z, 0-9 or _.
bool is_metadata_prefix(std::string_view prefix) noexcept;

// Returns a metadata line with the sanitized process name (clean_process_name).
std::string metadata_line(std::string_view prefix, std::string_view process_name);

struct Metadata {
  enum class State : std::uint8_t {
    more,     // more bytes are needed
    line,     // `in` starts with a metadata line
    absent,   // `in` starts with other bytes, possibly a frame
    too_long  // the line does not end within max_metadata_line
  };
  State state = State::more;
  std::size_t size = 0;   // length of the line, including the newline
  std::string_view name;  // a view of `in`, not sanitized
};

// Parses the metadata line, if any, at the start of a connection. Accepts `more_prefixes` in
// addition to known_prefixes.
Metadata parse_metadata(std::string_view in, std::span<const std::string> more_prefixes = {});

}  // namespace mcp_frame
