// Writes and parses the metadata line at the start of a connection: NUL, a prefix ("CAPSEM_META"),
// a colon, a process name, newline. The process name in this line is for diagnostics only; the
// process name in each frame is authoritative.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mcp_frame {

// Prefixes that are always accepted. The first one is the default for writing, because the program
// that defines the format uses it.
inline constexpr std::string_view known_prefixes[] = {"CAPSEM_META", "BULKHEAD_META"};
inline constexpr std::size_t max_prefix = 32;
inline constexpr std::size_t max_metadata_line = 512;  // including NUL and newline

// Returns true if the prefix has 1 to max_prefix characters and consists only of A-Z, 0-9 and _.
bool is_metadata_prefix(std::string_view prefix) noexcept;

// Returns a metadata line. The process name is sanitized with clean_process_name().
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

// If the connection starts with a metadata line, parses it. Accepts `more_prefixes` in addition to
// known_prefixes.
Metadata parse_metadata(std::string_view in, std::span<const std::string> more_prefixes = {});

}  // namespace mcp_frame
