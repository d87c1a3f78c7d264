// Splits the byte stream from a client connection into requests. Performs no I/O.
//
// If a request is complete in the input, it is returned in place, without a copy. An incomplete
// request is copied to a buffer, which is freed after the request. The buffer grows as bytes are
// received: an announced length alone reserves at most 1 MiB.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "http-codec/body_budget.hpp"
#include "http-codec/byte_buffer.hpp"
#include "http-codec/chunk_decoder.hpp"
#include "http-codec/request_head.hpp"
#include "http-codec/text.hpp"

namespace http_codec {

struct FeedLimits {
  std::uint32_t head_bytes = 32u << 10;
  std::uint64_t body_bytes = 64ull << 20;
  BodyBudget *budget = nullptr;  // shared by all connections; may be null
  bool needs_host = true;        // see HeadParser
};

class RequestFeed {
 public:
  enum class Result : std::uint8_t { more, request, error };

  explicit RequestFeed(const FeedLimits &limits) noexcept
      : limits_(&limits), parser_(limits.head_bytes, limits.needs_host) {}
  ~RequestFeed() { release(); }
  RequestFeed(const RequestFeed &) = delete;
  RequestFeed &operator=(const RequestFeed &) = delete;

  // Consumes bytes from the front of `in`, up to the end of one request.
  //   more     all of `in` has been consumed
  //   request  a request is complete; head(), text() and body() are valid until next() is called or
  //            the bytes of `in` become invalid
  //   error    status() is the HTTP status to respond with; the connection must not be used again
  Result feed(std::string_view &in) noexcept;

  // Drops the current request and frees its memory.
  void next() noexcept;

  // Returns memory into which the rest of a body of known length can be received, or an empty span.
  // Because the memory is reserved in advance, this must be called only after the request has been
  // admitted.
  std::span<char> room() noexcept;
  Result filled(std::size_t n) noexcept;

  // Returns true if the head of the current request is complete.
  bool head_known() const noexcept { return phase_ != Phase::head && phase_ != Phase::failed; }
  // Returns true if part of a request has been received.
  bool started() const noexcept { return !held_.empty() && phase_ != Phase::complete; }

  const RequestHead &head() const noexcept { return parser_.head(); }
  std::string_view text(Slice slice) const noexcept { return {base_ + slice.at, slice.n}; }
  std::string_view head_text() const noexcept { return text(Slice{0, head().bytes}); }
  std::string_view text(Field field) const noexcept { return text(head()[field]); }
  std::string_view body() const noexcept { return body_; }
  int status() const noexcept { return status_; }
  // Valid after Result::error. Returns the reason why the head is invalid, as a static string, or
  // an empty string if the error is not in the head.
  const char *why() const noexcept { return parser_.why() == nullptr ? "" : parser_.why(); }

 private:
  enum class Phase : std::uint8_t { head, body, chunks, complete, failed };

  Result feed_head(std::string_view &in) noexcept;
  Result feed_body(std::string_view &in) noexcept;
  Result feed_chunks(std::string_view &in) noexcept;
  Result head_done(std::string_view &in, std::string_view rest) noexcept;
  Result complete(const char *base, std::string_view body) noexcept;
  Result fail(int status) noexcept;
  bool charge(std::uint64_t bytes) noexcept;
  bool grow(std::size_t need) noexcept;
  void release() noexcept;
  std::size_t total() const noexcept { return head().bytes + head().content_length; }

  const FeedLimits *limits_;
  HeadParser parser_;
  ByteBuffer held_;     // head of an unfinished request, with its body unless chunked
  ByteBuffer decoded_;  // body of a chunked request
  ChunkDecoder chunks_{{}};
  const char *base_ = nullptr;
  std::string_view body_;
  std::uint64_t charged_ = 0;  // bytes charged to the budget
  int status_ = 0;
  Phase phase_ = Phase::head;
};

// Returns true if the Content-Type is application/json, with or without parameters.
inline bool is_json(const RequestFeed &feed) noexcept {
  return is_media_type(feed.text(Field::content_type), "application/json");
}

}  // namespace http_codec
