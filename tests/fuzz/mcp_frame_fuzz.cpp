// Fuzzes the frame decoder with split input. Frames and errors must not depend on how the input is
// split, accepted frames must encode to the same bytes, and at most one frame may be buffered.
//
// The first byte of the input selects how it is split.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "mcp-frame/frame_reader.hpp"

namespace {

using mcp_frame::Fault;
using mcp_frame::Frame;
using mcp_frame::FrameReader;

void require(bool holds) {
  if (!holds) std::abort();
}

// Returns the result of each step as text.
std::vector<std::string> run(std::string_view in, std::uint8_t cut) {
  FrameReader reader;
  std::vector<std::string> out;
  std::uint32_t random = cut;
  while (!in.empty()) {
    random = random * 1664525u + 1013904223u;
    std::size_t n =
        cut == 0 ? in.size() : std::min<std::size_t>(in.size(), 1 + (random >> 24) % cut);
    // A copy of exactly this size, so that the sanitizer detects views that outlive it.
    std::vector<char> piece;
    std::string_view rest;
    if (const auto room = (cut & 1) != 0 ? reader.room() : std::span<char>(); !room.empty()) {
      n = std::min(n, room.size());
      std::memcpy(room.data(), in.data(), n);
      reader.filled(n);
    } else {
      piece.assign(in.begin(), in.begin() + static_cast<std::ptrdiff_t>(n));
      rest = {piece.data(), n};
    }
    in.remove_prefix(n);
    for (;;) {
      Frame frame;
      const FrameReader::Step step = reader.next(&rest, &frame);
      if (step == FrameReader::Step::more) break;
      std::string text = std::to_string(static_cast<int>(step)) + " " +
                         std::to_string(static_cast<int>(reader.fault())) + " ";
      if (step == FrameReader::Step::lost) {
        out.push_back(text);
        return out;
      }
      text += std::to_string(frame.stream) + " ";
      if (step == FrameReader::Step::frame) {
        require(mcp_frame::encode(frame, &text) == Fault::none);
      }
      out.push_back(text);
    }
    require(rest.empty());
    require(reader.held() < mcp_frame::length_bytes + mcp_frame::max_total);
  }
  out.push_back("held " + std::to_string(reader.held()));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view in(reinterpret_cast<const char *>(data) + 1, size - 1);
  const auto whole = run(in, 0);
  require(whole == run(in, 1));
  require(whole == run(in, data[0]));
  return 0;
}
