// Splits a byte stream into frames.
//
// A complete frame is returned in place, in the read buffer. An incomplete frame is copied, and the
// rest of a long one can be read directly behind it. Memory is limited to one frame and at most
// twice the received bytes. Thread: the reactor's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "mcp-frame/frame.hpp"
#include "stdio-lines/bytes.hpp"

namespace mcp_frame {

class FrameReader {
 public:
  enum class Step : std::uint8_t {
    more,       // `in` is consumed
    frame,      // *out is the next frame
    bad_frame,  // skipped, see fault(); an error can be sent if out->stream is not 0
    lost        // see fault(): the next frame cannot be located; the reader must not be used again
  };

  // most: the limit for a frame's total length.
  explicit FrameReader(std::size_t most = max_total) noexcept : most_(most) {}

  // Consumes the next frame at the front of `in`. The texts of *out point into `in` or the reader
  // and are valid until the next call.
  Step next(std::string_view *in, Frame *out);
  Fault fault() const noexcept { return fault_; }

  // Returns a buffer for the rest of a long frame, at least worth_it bytes. If it is empty, use
  // another buffer and pass it to next(). After filled(n), n > 0, call next() with empty input
  // until it returns `more`.
  std::span<char> room() noexcept;
  void filled(std::size_t n) noexcept { partial_.added(n); }

  // Returns the bytes of an incomplete frame. If there are any at the end of a stream, the frame is
  // truncated.
  std::size_t held() const noexcept { return handed_out_ ? 0 : partial_.size(); }

 private:
  static constexpr std::size_t worth_it = 64u << 10;
  static constexpr std::size_t kept_buffer = 16u << 10;  // limit for an idle connection

  void drop_handed_out() noexcept;
  Step finish(std::string_view whole, Frame *out) noexcept;
  bool fill(std::string_view *in, std::size_t wanted);
  Step lose(Fault fault) noexcept;
  Fault check_total(std::uint32_t total) const noexcept;

  const std::size_t most_;
  stdio_lines::Bytes partial_;
  bool handed_out_ = false;  // partial_ is the last returned frame
  Fault fault_ = Fault::none;
};

}  // namespace mcp_frame
