// Detects the protocol of a new connection from its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace transport_vsock {

struct Sniffed {
  enum class Kind : std::uint8_t {
    more,    // undecided: fewer than max_undecided bytes
    frames,  // frames (mcp-frame)
    lines,   // one JSON text per line, the older protocol
    other,   // another protocol, such as TLS or HTTP
    refused  // the metadata line is too long
  };
  Kind kind = Kind::more;
  std::size_t start = 0;  // offset of the first byte after the metadata line
  std::string_view name;  // from the metadata line, not sanitized
};

inline constexpr std::size_t max_undecided = 512 + 6;

// `in` must contain all bytes received so far. The metadata line is optional. A result other than
// `more` is final. A frame whose total length exceeds `max_frame` is not recognized as a frame.
Sniffed sniff(std::string_view in, std::span<const std::string> metadata_prefixes,
              std::size_t max_frame);

}  // namespace transport_vsock
