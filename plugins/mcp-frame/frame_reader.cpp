#include "mcp-frame/frame_reader.hpp"

#include <algorithm>

namespace mcp_frame {

Fault FrameReader::check_total(std::uint32_t total) const noexcept {
  if (total < min_total) return Fault::total_too_small;
  return total > most_ ? Fault::total_too_large : Fault::none;
}

FrameReader::Step FrameReader::next(std::string_view *in, Frame *out) {
  drop_handed_out();
  if (partial_.empty() && in->size() >= length_bytes) {
    const std::uint32_t total = total_length(*in);
    if (const Fault fault = check_total(total); fault != Fault::none) return lose(fault);
    if (in->size() >= length_bytes + total) {
      const std::string_view whole = in->substr(0, length_bytes + total);
      in->remove_prefix(whole.size());
      return finish(whole, out);
    }
  }
  std::size_t wanted = length_bytes;
  for (int i = 0; i < 2; ++i) {
    if (!fill(in, wanted)) return lose(Fault::total_too_large);  // memory allocation failed
    if (partial_.size() < wanted) return Step::more;
    const std::uint32_t total = total_length(partial_.view());
    if (const Fault fault = check_total(total); fault != Fault::none) return lose(fault);
    wanted = length_bytes + total;
  }
  handed_out_ = true;
  return finish(partial_.view(), out);
}

void FrameReader::drop_handed_out() noexcept {
  if (!std::exchange(handed_out_, false)) return;
  if (partial_.capacity() > kept_buffer) {
    partial_.release();
  } else {
    partial_.clear();
  }
}

std::span<char> FrameReader::room() noexcept {
  if (handed_out_ || partial_.size() < length_bytes) return {};
  const std::size_t missing = length_bytes + total_length(partial_.view()) - partial_.size();
  // The buffer grows only as bytes arrive, so a peer cannot make the reader allocate a megabyte
  // just by sending a length field.
  if (missing < worth_it || !partial_.reserve(std::min(missing, worth_it))) return {};
  return {partial_.tail(), std::min(missing, partial_.room())};
}

// Moves bytes from `in` to partial_ until partial_ has `wanted` bytes or `in` is empty. Returns
// false if memory allocation fails.
bool FrameReader::fill(std::string_view *in, std::size_t wanted) {
  if (partial_.size() >= wanted) return true;
  const std::string_view some = in->substr(0, wanted - partial_.size());
  if (!partial_.append(some)) return false;
  in->remove_prefix(some.size());
  return true;
}

FrameReader::Step FrameReader::finish(std::string_view whole, Frame *out) noexcept {
  fault_ = decode(whole, out);
  return fault_ == Fault::none ? Step::frame : Step::bad_frame;
}

FrameReader::Step FrameReader::lose(Fault fault) noexcept {
  fault_ = fault;
  partial_.release();
  return Step::lost;
}

}  // namespace mcp_frame
