// Reads responses from the byte stream of a connection. Skips interim responses (1xx), parses the
// head, and finds the end of the body. Performs no I/O. A head is copied only if it arrives in
// pieces.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "http-codec/chunk_decoder.hpp"
#include "http-codec/response_head.hpp"

namespace http_codec {

class ResponseReader {
 public:
  enum class Result : std::uint8_t { more, head, body, done, invalid, head_too_large };

  explicit ResponseReader(std::uint64_t head_bytes) noexcept : head_bytes_(head_bytes) {}

  // Prepares for the next response. The views in head() remain valid.
  void reset() noexcept { phase_ = Phase::head; }

  // Consumes bytes from the front of `in`. After `head` and `body`, call it again.
  //   more   all of `in` has been consumed
  //   head   head() is complete; its views are valid until the next response is read or the
  //          bytes of `in` become invalid
  //   body   `piece` is the next part of the body, a view of `in`
  //   done   the response is complete; `in` contains the bytes after it
  Result next(std::string_view &in, std::string_view &piece);

  const ResponseHead &head() const noexcept { return head_; }
  // Returns the reason why the response is invalid, as a static string.
  const char *why() const noexcept { return why_; }
  // Returns how many bytes of a body of known length are still missing. Otherwise returns 0.
  std::uint64_t missing() const noexcept { return phase_ == Phase::length ? left_ : 0; }
  // Returns true if the response ends when the connection is closed.
  bool ends_with_connection() const noexcept { return phase_ == Phase::until_close; }

 private:
  enum class Phase : std::uint8_t { head, length, chunked, until_close, done };

  Result next_head(std::string_view &in);
  Result next_chunk(std::string_view &in, std::string_view &piece) noexcept;
  Result invalid(const char *why) noexcept {
    why_ = why;
    return Result::invalid;
  }

  std::uint64_t head_bytes_;
  ResponseHead head_;
  std::string held_;  // an incomplete head, or a head that the views refer to
  std::uint64_t left_ = 0;
  ChunkDecoder chunks_{{}};
  const char *why_ = nullptr;
  Phase phase_ = Phase::head;
  bool held_is_old_ = false;
};

}  // namespace http_codec
