#include "http-codec/chunk_decoder.hpp"

#include <algorithm>

#include "http-codec/text.hpp"

namespace http_codec {

ChunkDecoder::Result ChunkDecoder::feed(std::string_view &in, ByteBuffer &out) noexcept {
  while (state_ != State::done) {
    if (in.empty()) return Result::more;
    if (state_ == State::data) {
      const std::size_t n = std::min<std::uint64_t>(size_, in.size());
      if (!out.append(in.substr(0, n))) return Result::no_memory;
      in.remove_prefix(n);
      size_ -= n;
      if (size_ == 0) state_ = State::data_cr;
      continue;
    }
    const char c = in.front();
    in.remove_prefix(1);
    if (!step(c)) return Result::malformed;
    if (state_ == State::data && size_ > body_limit_ - out.size()) return Result::too_large;
  }
  return Result::done;
}

bool ChunkDecoder::take_size(char c) noexcept {
  unsigned digit = 16;
  if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a') + 10;
  if (c >= 'A' && c <= 'F') digit = static_cast<unsigned>(c - 'A') + 10;
  if (digit < 16) {
    size_ = size_ * 16 + digit;
    return ++digits_ <= 15;  // 60 bits: no overflow, and no row of zeros without end
  }
  state_ = State::size_lf;
  return digits_ > 0 && c == '\r';
}

bool ChunkDecoder::step(char c) noexcept {
  switch (state_) {
    case State::size:
      return take_size(c);
    case State::size_lf:
      state_ = size_ == 0 ? State::trailer_start : State::data;
      digits_ = 0;
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
