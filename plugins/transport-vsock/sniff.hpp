// What a new connection speaks, told from its first bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace transport_vsock {

struct Sniffed {
  enum class Kind : std::uint8_t {
    more,    // cannot be told yet; fewer than max_undecided bytes are there
    frames,  // mcp-frame
    lines,   // a JSON text per line: the older generation
    other,   // TLS, HTTP, anything
    refused  // a metadata line without end
  };
  Kind kind = Kind::more;
  std::size_t start = 0;  // where it begins, behind a metadata line
  std::string_view name;  // in the metadata line, uncleaned
};

inline constexpr std::size_t max_undecided = 512 + 6;

// `in`: everything that has come, from the first byte on. The same answer for any longer `in`, once
// it is not `more`. The metadata line may be missing.
Sniffed sniff(std::string_view in, std::span<const std::string> metadata_prefixes);

}  // namespace transport_vsock
