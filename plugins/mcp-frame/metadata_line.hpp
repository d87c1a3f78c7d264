// The line at the beginning of every connection: NUL, "CAPSEM_META:", a process name, newline.
// For diagnosis only; the name inside each frame is the one that counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace mcp_frame {

// Always understood. The first is the other program's, which we also write unless told otherwise.
inline constexpr std::string_view known_prefixes[] = {"CAPSEM_META", "BULKHEAD_META"};
inline constexpr std::size_t max_prefix = 32;
inline constexpr std::size_t max_metadata_line = 512;  // NUL and newline included

// 1 to max_prefix of A-Z, 0-9 and _.
bool is_metadata_prefix(std::string_view prefix) noexcept;

// The name is cleaned.
std::string metadata_line(std::string_view prefix, std::string_view process_name);

struct Metadata {
  enum class State : std::uint8_t {
    more,     // cannot be told yet
    line,     // `in` starts with one
    absent,   // `in` starts with something else, which may be a frame
    too_long  // a line that does not end within max_metadata_line
  };
  State state = State::more;
  std::size_t size = 0;   // of the line, with its newline
  std::string_view name;  // borrowed from `in`; as the peer wrote it
};

// Looks at the first bytes of a connection. `more_prefixes` are understood beside the known ones.
Metadata parse_metadata(std::string_view in, std::span<const std::string> more_prefixes = {});

}  // namespace mcp_frame
