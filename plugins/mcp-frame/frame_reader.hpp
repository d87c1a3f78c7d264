// Splits a byte stream into frames.
//
// If a frame is complete in the caller's read buffer, it is returned in place. Otherwise it is
// copied, and the rest of a long frame can be received directly into the copy. Memory use grows
// with the number of bytes received, not with the announced length. Runs on the reactor thread.
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
    bad_frame,  // a frame was skipped (see fault()); if out->stream is not 0, an error response can
                // be sent
    lost        // the next frame cannot be located (see fault()); the reader must not be used again
  };

  // `most` limits the total length of a frame.
  explicit FrameReader(std::size_t most = max_total) noexcept : most_(most) {}

  // Consumes the next frame at the front of `in`. The strings in *out refer to `in` or to the
  // reader, and are valid until the next call.
  Step next(std::string_view *in, Frame *out);
  Fault fault() const noexcept { return fault_; }

  // Returns a buffer into which the rest of a long frame can be received directly. The buffer
  // either has at least worth_it bytes or is empty. If it is empty, receive into another buffer and
  // pass that to next(). After filled(n) with n > 0, call next() with empty input until it returns
  // `more`.
  std::span<char> room() noexcept;
  void filled(std::size_t n) noexcept { partial_.added(n); }

  // Returns the number of bytes buffered for an incomplete frame. At the end of the stream, a
  // nonzero value means that the last frame was truncated.
  std::size_t held() const noexcept { return handed_out_ ? 0 : partial_.size(); }

 private:
  static constexpr std::size_t worth_it = 64u << 10;
  static constexpr std::size_t kept_buffer = 16u << 10;  // largest buffer of an idle connection

  void drop_handed_out() noexcept;
  Step finish(std::string_view whole, Frame *out) noexcept;
  bool fill(std::string_view *in, std::size_t wanted);
  Step lose(Fault fault) noexcept;
  Fault check_total(std::uint32_t total) const noexcept;

  const std::size_t most_;
  stdio_lines::Bytes partial_;
  bool handed_out_ = false;  // partial_ is the frame that the last call returned
  Fault fault_ = Fault::none;
};

}  // namespace mcp_frame
