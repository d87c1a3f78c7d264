#include "mcp-frame/frame.hpp"

#include <bulkhead/cpp/text.hpp>

#include <cstring>

namespace mcp_frame {
namespace {

constexpr std::uint32_t magic = 0x4D43;
constexpr std::uint32_t version = 1;
constexpr std::uint32_t notification_flag = 1;

std::uint32_t read_be(std::string_view in, std::size_t at, std::size_t bytes) noexcept {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) {
    value = value << 8 | static_cast<unsigned char>(in[at + i]);
  }
  return value;
}

void write_be(char *to, std::uint32_t value, std::size_t bytes) noexcept {
  for (std::size_t i = bytes; i-- > 0; value >>= 8) to[i] = static_cast<char>(value & 0xFF);
}

// Checks that apply to both encoding and decoding.
Fault check(const Frame &frame) noexcept {
  if (frame.stream == 0 && !frame.notification) return Fault::stream_zero;
  if (frame.stream != 0 && frame.notification) return Fault::notification_stream;
  if (frame.name.size() > max_name) return Fault::name_too_long;
  return bh::is_utf8(frame.name) ? Fault::none : Fault::name_not_utf8;
}

}  // namespace

std::string_view text(Fault fault) noexcept {
  switch (fault) {
    case Fault::none:
      return "no fault";
    case Fault::total_too_small:
      return "the total length is less than 16";
    case Fault::total_too_large:
      return "the total length exceeds the limit";
    case Fault::magic:
      return "the magic number is wrong";
    case Fault::version:
      return "the version is not 1";
    case Fault::header_length:
      return "the header length is not 16";
    case Fault::reserved_flags:
      return "a reserved flag is set";
    case Fault::stream_zero:
      return "stream 0 is reserved for notifications";
    case Fault::notification_stream:
      return "a notification has a stream other than 0";
    case Fault::name_too_long:
      return "the process name is longer than 128 bytes";
    case Fault::name_not_utf8:
      return "the process name is not UTF-8";
    case Fault::length_mismatch:
      return "the total length is not the sum of the parts";
  }
  return "unknown fault";
}

bool looks_like_frame(std::string_view in, std::size_t most) noexcept {
  const std::uint32_t total = total_length(in);
  return total >= min_total && total <= most && read_be(in, 4, 2) == magic;
}

std::uint32_t total_length(std::string_view in) noexcept {
  return read_be(in, 0, length_bytes);
}

Fault decode(std::string_view in, Frame *out) noexcept {
  *out = {};
  out->stream = read_be(in, 8, 4);
  if (read_be(in, 4, 2) != magic) return Fault::magic;
  if (read_be(in, 6, 1) != version) return Fault::version;
  if (read_be(in, 7, 1) != header_bytes) return Fault::header_length;
  const std::uint32_t flags = read_be(in, 12, 2);
  if ((flags & ~notification_flag) != 0) return Fault::reserved_flags;
  const std::size_t name_bytes = read_be(in, 14, 2);
  if (name_bytes > max_name) return Fault::name_too_long;
  const std::string_view rest = in.substr(length_bytes + header_bytes);
  if (name_bytes + read_be(in, 16, 4) != rest.size()) return Fault::length_mismatch;
  out->notification = flags == notification_flag;
  out->name = rest.substr(0, name_bytes);
  out->payload = rest.substr(name_bytes);
  return check(*out);
}

Fault encode_head(const Frame &frame, std::size_t payload_bytes, char *to, std::size_t *size,
                  std::size_t most) noexcept {
  if (const Fault fault = check(frame); fault != Fault::none) return fault;
  const std::size_t head = header_bytes + frame.name.size();
  if (payload_bytes > most - head) return Fault::total_too_large;
  write_be(to, static_cast<std::uint32_t>(head + payload_bytes), 4);
  write_be(to + 4, magic, 2);
  write_be(to + 6, version, 1);
  write_be(to + 7, header_bytes, 1);
  write_be(to + 8, frame.stream, 4);
  write_be(to + 12, frame.notification ? notification_flag : 0, 2);
  write_be(to + 14, static_cast<std::uint32_t>(frame.name.size()), 2);
  write_be(to + 16, static_cast<std::uint32_t>(payload_bytes), 4);
  if (!frame.name.empty()) std::memcpy(to + 20, frame.name.data(), frame.name.size());
  *size = length_bytes + head;
  return Fault::none;
}

Fault encode(const Frame &frame, std::string *out) {
  char head[max_head];
  std::size_t size = 0;
  const Fault fault = encode_head(frame, frame.payload.size(), head, &size);
  if (fault != Fault::none) return fault;
  out->append(head, size).append(frame.payload);
  return Fault::none;
}

}  // namespace mcp_frame
