// Cuts what a stream delivers into frames.
//
// A whole frame is handed out where it was read to; only one that a read did not finish is copied,
// and the rest of a long one can be read straight behind it. Holds at most one frame (1 052 676
// bytes), and only as much memory as has arrived, rounded up to twice that. Thread: the reactor's.
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
    more,       // `in` is used up
    frame,      // *out is the next one
    bad_frame,  // skipped, see fault(); out->stream may be answered if it is not 0
    lost        // see fault(): where the next frame begins cannot be known, use no more
  };

  // Takes the next frame from the front of `in`. The texts of *out lie in `in` or in the reader and
  // live until the next call.
  Step next(std::string_view *in, Frame *out);
  Fault fault() const noexcept { return fault_; }

  // For the rest of a long frame, at least worth_it bytes; empty: read elsewhere and give it to
  // next(). After filled(n), n > 0, call next() with nothing until it wants more.
  std::span<char> room() noexcept;
  void filled(std::size_t n) noexcept { partial_.added(n); }

  // Bytes of a frame that has begun and not ended: nonzero at the end of a stream means a cut.
  std::size_t held() const noexcept { return handed_out_ ? 0 : partial_.size(); }

 private:
  static constexpr std::size_t worth_it = 64u << 10;
  static constexpr std::size_t kept_buffer = 16u << 10;  // by an idle connection

  void drop_handed_out() noexcept;
  Step finish(std::string_view whole, Frame *out) noexcept;
  bool fill(std::string_view *in, std::size_t wanted);
  Step lose(Fault fault) noexcept;

  stdio_lines::Bytes partial_;
  bool handed_out_ = false;  // partial_ is the frame that was handed out last
  Fault fault_ = Fault::none;
};

}  // namespace mcp_frame
