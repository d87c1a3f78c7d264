#include "http-codec/request_feed.hpp"

#include <algorithm>

namespace http_codec {

namespace {

constexpr std::size_t first_step = 1u << 20;   // initial buffer size of a body; doubled when full
constexpr std::size_t least_room = 64u << 10;  // minimum buffer space for a system call

}  // namespace

RequestFeed::Result RequestFeed::feed(std::string_view &in) noexcept {
  Result result = Result::more;
  switch (phase_) {
    case Phase::head:
      result = feed_head(in);
      break;
    case Phase::body:
      result = feed_body(in);
      break;
    case Phase::chunks:
      result = feed_chunks(in);
      break;
    case Phase::complete:
      return Result::request;
    case Phase::failed:
      return Result::error;
  }
  return result;
}

RequestFeed::Result RequestFeed::feed_head(std::string_view &in) noexcept {
  std::string_view seen = in;
  std::size_t before = 0;
  if (!held_.empty()) {
    before = held_.size();
    if (!held_.append(in.substr(0, limits_->head_bytes - before))) return fail(503);
    seen = held_.view();
  }
  switch (parser_.advance(seen)) {
    case HeadParser::Result::error:
      return fail(parser_.status());
    case HeadParser::Result::more:
      if (before == 0 && !held_.append(in)) return fail(503);
      in = {};
      return Result::more;
    case HeadParser::Result::done:
      break;
  }
  base_ = seen.data();
  const RequestHead &head = parser_.head();
  if (head.content_length > limits_->body_bytes) return fail(413);
  const std::string_view rest = in.substr(head.bytes - before);
  if (!head.chunked && before == 0 && rest.size() >= head.content_length) {
    in = rest.substr(head.content_length);
    return complete(base_, rest.substr(0, head.content_length));
  }
  return head_done(in, rest);
}

// Copies the head to held_, so that its slices refer to held_ and no longer to the input. A
// body that is not chunked is stored after the head.
RequestFeed::Result RequestFeed::head_done(std::string_view &in, std::string_view rest) noexcept {
  if (held_.empty() && !held_.append({base_, head().bytes})) return fail(503);
  held_.truncate(head().bytes);
  base_ = held_.data();
  in = rest;
  if (!head().chunked) {
    phase_ = Phase::body;
    return feed_body(in);
  }
  chunks_ = ChunkDecoder({.trailer_bytes = limits_->head_bytes});
  phase_ = Phase::chunks;
  return feed_chunks(in);
}

RequestFeed::Result RequestFeed::feed_body(std::string_view &in) noexcept {
  const std::size_t n = std::min(in.size(), total() - held_.size());
  if (!grow(held_.size() + n)) return fail(503);
  held_.append(in.substr(0, n));
  in.remove_prefix(n);
  return filled(0);
}

RequestFeed::Result RequestFeed::feed_chunks(std::string_view &in) noexcept {
  std::string_view piece;
  for (;;) {
    switch (chunks_.next(in, limits_->body_bytes - decoded_.size(), piece)) {
      case ChunkDecoder::Result::data:
        if (!decoded_.append(piece)) return fail(503);
        break;
      case ChunkDecoder::Result::more:
        return charge(held_.capacity() + decoded_.capacity()) ? Result::more : fail(503);
      case ChunkDecoder::Result::done:
        return complete(held_.data(), decoded_.view());
      case ChunkDecoder::Result::malformed:
        return fail(400);
      case ChunkDecoder::Result::too_large:
        return fail(413);
    }
  }
}

std::span<char> RequestFeed::room() noexcept {
  if (phase_ != Phase::body) return {};
  const std::size_t missing = total() - held_.size();
  // If the budget or the memory is exhausted, the caller passes the bytes to feed(), which reports
  // the error.
  if (!grow(held_.size() + std::min(missing, least_room))) return {};
  return held_.room().first(std::min(missing, held_.room().size()));
}

bool RequestFeed::charge(std::uint64_t bytes) noexcept {
  if (limits_->budget != nullptr && !limits_->budget->change(charged_, bytes)) return false;
  charged_ = bytes;
  return true;
}

// Reserves `need` bytes for the head and the body. If the budget permits, reserves more, so that
// the buffer does not have to be reallocated for every piece.
bool RequestFeed::grow(std::size_t need) noexcept {
  if (need <= held_.capacity()) return true;
  std::size_t wanted =
      std::min(total(), std::max({need, held_.size() + first_step, held_.capacity() * 2}));
  if (!charge(wanted) && !charge(wanted = need)) return false;
  if (!held_.reserve(wanted)) return false;
  base_ = held_.data();
  return true;
}

void RequestFeed::release() noexcept {
  held_.clear();
  decoded_.clear();
  base_ = nullptr;
  body_ = {};
  charge(0);
}

RequestFeed::Result RequestFeed::filled(std::size_t n) noexcept {
  held_.filled(n);
  if (held_.size() < total()) return Result::more;
  return complete(held_.data(), held_.view().substr(head().bytes));
}

RequestFeed::Result RequestFeed::complete(const char *base, std::string_view body) noexcept {
  base_ = base;
  body_ = body;
  phase_ = Phase::complete;
  return Result::request;
}

RequestFeed::Result RequestFeed::fail(int status) noexcept {
  release();
  status_ = status;
  phase_ = Phase::failed;
  return Result::error;
}

void RequestFeed::next() noexcept {
  parser_ = HeadParser(limits_->head_bytes, limits_->needs_host);
  release();
  phase_ = Phase::head;
}

}  // namespace http_codec
