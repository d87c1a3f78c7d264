// The envelope of one MCP message on a byte stream between a guest and its host.
//
//   offset  bytes
//   0       4     total length of what follows, 16 .. 1 052 672
//   4       2     0x4D43, "MC"
//   6       1     version, 1
//   7       1     length of this header without the total length, 16
//   8       4     stream: 0 exactly if this is a notification
//   12      2     flags: bit 0 = notification, the others 0
//   14      2     length of the process name, 0 .. 128
//   16      4     length of the payload
//   20            process name (UTF-8), then payload
//
// All integers are big-endian. Another program's wire format: nothing here may be "improved".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mcp_frame {

inline constexpr std::size_t length_bytes = 4;   // the total length itself
inline constexpr std::size_t header_bytes = 16;  // what it counts beside name and payload
inline constexpr std::size_t min_total = header_bytes;
inline constexpr std::size_t max_total = (1u << 20) + 4096;
inline constexpr std::size_t max_name = 128;
inline constexpr std::size_t max_head = length_bytes + header_bytes + max_name;
inline constexpr std::size_t sniff_bytes = 6;  // enough to see that a stream carries frames

// Why a frame is refused.
enum class Fault : std::uint8_t {
  none,
  total_too_small,  // these two leave no way to find the next frame
  total_too_large,
  magic,
  version,
  header_length,
  reserved_flags,
  stream_zero,          // stream 0 without the notification flag
  notification_stream,  // the flag with another stream than 0
  name_too_long,
  name_not_utf8,
  length_mismatch  // the total length is not the sum of the parts
};
std::string_view text(Fault fault) noexcept;

// What is in a frame. The texts are borrowed.
struct Frame {
  std::uint32_t stream = 0;
  bool notification = false;
  std::string_view name;
  std::string_view payload;
};

// Could these be the first bytes of a frame? `in` holds at least sniff_bytes.
bool looks_like_frame(std::string_view in) noexcept;

// The total length at the beginning of `in`, which holds at least length_bytes.
std::uint32_t total_length(std::string_view in) noexcept;

// Reads one whole frame; `in` is exactly it, its total length in range. Of a frame that is refused
// out->stream is what stands where the stream stands, so that it can be answered.
Fault decode(std::string_view in, Frame *out) noexcept;

// Writes everything before the payload to `to`, which has room for max_head bytes, and sets *size.
// The payload itself is not looked at, only payload_bytes counts: it can follow from where it is.
Fault encode_head(const Frame &frame, std::size_t payload_bytes, char *to,
                  std::size_t *size) noexcept;

// Appends one whole frame; nothing if it is refused.
Fault encode(const Frame &frame, std::string *out);

}  // namespace mcp_frame
