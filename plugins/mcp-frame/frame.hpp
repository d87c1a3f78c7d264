// Encodes and decodes frames. A frame is the envelope of one MCP message on a byte stream between a
// guest and its host.
//
//   offset  bytes
//   0       4     total length of the following bytes, 16 .. 1 052 672 (max_total)
//   4       2     0x4D43, "MC"
//   6       1     version, 1
//   7       1     length of this header without the total length, 16
//   8       4     stream: 0 if and only if this is a notification
//   12      2     flags: bit 0 = notification, all other bits 0
//   14      2     length of the process name, 0 .. 128
//   16      4     length of the payload
//   20            process name (UTF-8), then payload
//
// All integers are big-endian. The format is defined by another program, so it cannot be changed
// here. Two programs from this distribution on the same machine may agree on a larger total length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mcp_frame {

inline constexpr std::size_t length_bytes = 4;   // size of the total length field
inline constexpr std::size_t header_bytes = 16;  // size of the header after the total length field
inline constexpr std::size_t min_total = header_bytes;
inline constexpr std::size_t max_total = (1u << 20) + 4096;
inline constexpr std::size_t max_name = 128;
inline constexpr std::size_t max_head = length_bytes + header_bytes + max_name;
inline constexpr std::size_t sniff_bytes = 6;  // bytes needed by looks_like_frame()

// The reasons why a frame is rejected.
enum class Fault : std::uint8_t {
  none,
  total_too_small,  // total_too_small and total_too_large: the next frame cannot be located
  total_too_large,
  magic,
  version,
  header_length,
  reserved_flags,
  stream_zero,          // stream 0 without the notification flag
  notification_stream,  // the notification flag with a stream other than 0
  name_too_long,
  name_not_utf8,
  length_mismatch  // the total length is not the sum of the parts
};
std::string_view text(Fault fault) noexcept;

// A frame to encode, or a decoded frame. The strings are borrowed.
struct Frame {
  std::uint32_t stream = 0;
  bool notification = false;
  std::string_view name;
  std::string_view payload;
};

// Returns true if the first bytes of `in` could be the start of a frame. `in` must have at least
// sniff_bytes bytes. `most` is the maximum total length of a frame.
bool looks_like_frame(std::string_view in, std::size_t most = max_total) noexcept;

// Returns the total length field of `in`, which must have at least length_bytes bytes.
std::uint32_t total_length(std::string_view in) noexcept;

// Decodes `in`, which must be exactly one frame with a valid total length. If the frame is
// rejected, out->stream is still set, so the caller can send an error response.
Fault decode(std::string_view in, Frame *out) noexcept;

// Encodes everything before the payload into `to`, which must have room for max_head bytes, and
// sets *size. frame.payload is ignored: after the head, the caller must write payload_bytes bytes.
// `most` limits the total length.
Fault encode_head(const Frame &frame, std::size_t payload_bytes, char *to, std::size_t *size,
                  std::size_t most = max_total) noexcept;

// Appends a complete frame to *out, or nothing if the frame is invalid.
Fault encode(const Frame &frame, std::string *out);

}  // namespace mcp_frame
