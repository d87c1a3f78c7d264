#include "http-codec/chunk_decoder.hpp"

#include <algorithm>

#include "http-codec/text.hpp"

namespace http_codec {

namespace {

// Prevents overflow (15 hex digits hold 60 bits) and endless runs of leading zeros.
constexpr std::uint32_t max_size_digits = 15;

}  // namespace

ChunkDecoder::Result ChunkDecoder::next(std::string_view &in, std::uint64_t size_limit,
                                        std::string_view &piece) noexcept {
  while (state_ != State::done) {
    if (in.empty()) return Result::more;
    if (state_ == State::data) {
      const std::size_t n = std::min<std::uint64_t>(size_, in.size());
      piece = in.substr(0, n);
      in.remove_prefix(n);
      size_ -= n;
      if (size_ == 0) state_ = State::data_cr;
      return Result::data;
    }
    const char c = in.front();
    in.remove_prefix(1);
    if (!step(c)) return Result::malformed;
    if (state_ == State::data && size_ > size_limit) return Result::too_large;
  }
  return Result::done;
}

bool ChunkDecoder::take_size(char c) noexcept {
  if (const int digit = bh::hex_value(c); digit >= 0) {
    size_ = size_ * 16 + static_cast<unsigned>(digit);
    return ++line_bytes_ <= max_size_digits;
  }
  if (line_bytes_ == 0) return false;
  line_bytes_ = 0;
  state_ = State::extension;
  return (c == '\r' || c == ';' || c == ' ' || c == '\t') && take_extension(c);
}

bool ChunkDecoder::take_extension(char c) noexcept {
  if (c == '\r') state_ = State::size_lf;
  return c == '\r' || (!is_control(c) && line_bytes_++ < limits_.extension_bytes);
}

bool ChunkDecoder::step(char c) noexcept {
  switch (state_) {
    case State::size:
      return take_size(c);
    case State::extension:
      return take_extension(c);
    case State::size_lf:
      state_ = size_ == 0 ? State::trailer_start : State::data;
      line_bytes_ = 0;
      return c == '\n';
    case State::data_cr:
      state_ = State::data_lf;
      return c == '\r';
    case State::data_lf:
      state_ = State::size;
      return c == '\n';
    case State::trailer_start:
      state_ = c == '\r' ? State::last_lf : State::trailer_name;
      return c == '\r' || (is_token_char(c) && spend());
    case State::trailer_name:
      if (c == ':') state_ = State::trailer_value;
      return (c == ':' || is_token_char(c)) && spend();
    case State::trailer_value:
      if (c == '\r') state_ = State::trailer_lf;
      return c == '\r' || (!is_control(c) && spend());
    case State::trailer_lf:
      state_ = State::trailer_start;
      return c == '\n';
    case State::last_lf:
      state_ = State::done;
      return c == '\n';
    case State::data:
    case State::done:
      break;
  }
  return false;
}

}  // namespace http_codec
