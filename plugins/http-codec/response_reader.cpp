#include "http-codec/response_reader.hpp"

#include <algorithm>
#include <utility>

namespace http_codec {

namespace {

constexpr ChunkLimits chunk_limits{.trailer_bytes = 4096, .extension_bytes = 4096};
constexpr std::uint64_t max_chunk_bytes = std::uint64_t{1} << 40;

}  // namespace

ResponseReader::Result ResponseReader::next(std::string_view &in, std::string_view &piece) {
  switch (phase_) {
    case Phase::head:
      return next_head(in);
    case Phase::chunked:
      return next_chunk(in, piece);
    case Phase::until_close:
      piece = std::exchange(in, {});
      return piece.empty() ? Result::more : Result::body;
    case Phase::length:
      if (left_ == 0) break;
      piece = in.substr(0, std::min<std::uint64_t>(left_, in.size()));
      in.remove_prefix(piece.size());
      left_ -= piece.size();
      return piece.empty() ? Result::more : Result::body;
    case Phase::done:
      break;
  }
  phase_ = Phase::done;
  return Result::done;
}

ResponseReader::Result ResponseReader::next_head(std::string_view &in) {
  if (std::exchange(held_is_old_, false)) held_.clear();
  for (;;) {
    const std::size_t before = held_.size();
    std::string_view bytes = in.substr(0, head_bytes_);
    if (before > 0) {
      held_.append(in.substr(0, head_bytes_ - before));
      bytes = held_;
      // parse_head() always starts again at the first byte, so it is called only when the head is
      // complete.
      const bool whole =
          held_.find("\r\n\r\n", before - std::min<std::size_t>(before, 3)) != std::string::npos;
      if (!whole && bytes.size() < head_bytes_) return in = {}, Result::more;
    }
    std::size_t used = 0;
    switch (parse_head(bytes, &head_, &used, &why_)) {
      case ParseResult::invalid:
        return Result::invalid;
      case ParseResult::incomplete:
        if (bytes.size() >= head_bytes_) return Result::head_too_large;
        if (before == 0) held_.assign(in);
        in = {};
        return Result::more;
      case ParseResult::complete:
        break;
    }
    in.remove_prefix(used - before);
    if (head_.status >= 200) break;
    if (head_.status == 101) return invalid("an upgrade that was not requested");
    held_.clear();
  }
  held_is_old_ = !held_.empty();
  left_ = head_.content_length;
  if (head_.framing == Framing::chunked) chunks_ = ChunkDecoder(chunk_limits);
  phase_ = head_.framing == Framing::length    ? Phase::length
           : head_.framing == Framing::chunked ? Phase::chunked
           : head_.framing == Framing::none    ? Phase::done
                                               : Phase::until_close;
  return Result::head;
}

ResponseReader::Result ResponseReader::next_chunk(std::string_view &in,
                                                  std::string_view &piece) noexcept {
  switch (chunks_.next(in, max_chunk_bytes, piece)) {
    case ChunkDecoder::Result::more:
      return Result::more;
    case ChunkDecoder::Result::data:
      return Result::body;
    case ChunkDecoder::Result::done:
      phase_ = Phase::done;
      return Result::done;
    case ChunkDecoder::Result::malformed:
    case ChunkDecoder::Result::too_large:
      break;
  }
  return invalid("a malformed chunk");
}

}  // namespace http_codec
