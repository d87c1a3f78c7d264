// Splits a byte stream into frames.
//
// A complete frame is returned in place, in the read buffer. An incomplete frame is copied; the
// remaining bytes of a long frame can be read directly into its buffer. Memory is limited to one
// frame and at most twice the received bytes. Runs on the reactor thread.
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
    more,       // all of `in` has been consumed
    frame,      // *out is the next frame
    bad_frame,  // skipped, see fault(); if out->stream is not 0, an error can be sent
    lost        // the next frame cannot be located, see fault(); do not use the reader again
  };

  // `most` is the limit for a frame's total length.
  explicit FrameReader(std::size_t most = max_total) noexcept : most_(most) {}

  // Consumes the next frame at the front of `in`. The strings in *out refer to `in` or the reader
  // and are valid until the next call.
  Step next(std::string_view *in, Frame *out);
  Fault fault() const noexcept { return fault_; }

  // Returns a buffer of at least worth_it bytes for the remaining bytes of a long frame. If the
  // result is empty, read into another buffer and pass that to next(). After filled(n), n > 0, call
  // next() with empty input until it returns `more`.
  std::span<char> room() noexcept;
  void filled(std::size_t n) noexcept { partial_.added(n); }

  // Returns the number of bytes of an incomplete frame. If this number is not 0 at the end of the
  // stream, the frame was truncated.
  std::size_t held() const noexcept { return handed_out_ ? 0 : partial_.size(); }

 private:
  static constexpr std::size_t worth_it = 64u << 10;
  static constexpr std::size_t kept_buffer = 16u << 10;  // buffer size kept by idle connections

  void drop_handed_out() noexcept;
  Step finish(std::string_view whole, Frame *out) noexcept;
  bool fill(std::string_view *in, std::size_t wanted);
  Step lose(Fault fault) noexcept;
  Fault check_total(std::uint32_t total) const noexcept;

  const std::size_t most_;
  stdio_lines::Bytes partial_;
  bool handed_out_ = false;  // partial_ is the frame returned last
  Fault fault_ = Fault::none;
};

}  // namespace mcp_frame
