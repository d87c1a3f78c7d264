// The head of an HTTP/1.x request: request line and fields, parsed strictly and line by line.
//
// Strict because a gateway stands behind proxies and in front of servers: whatever two parsers may
// read differently (bare LF, folded lines, a space before the colon, two lengths, unknown transfer
// codings) is refused with 400, never guessed.
//
// No I/O, no allocation. Only the fields that the transport acts upon are kept; the others are
// checked and skipped.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace http_codec {

enum class Method : std::uint8_t { get, head, post, del, options, other };

// A range of the request's bytes. An offset, not a pointer: the bytes may move while they arrive.
struct Slice {
  std::uint32_t at = 0;
  std::uint32_t n = 0;
};

// Fields that may occur once and are kept as they are.
enum class Field : std::uint8_t {
  host,
  origin,
  authorization,
  content_type,
  session,
  revision,
  last_event_id,
  fetch_site,
  count_
};

struct RequestHead {
  Method method = Method::other;
  std::uint8_t minor = 1;  // HTTP/1.minor
  bool chunked = false;
  bool has_length = false;
  bool close = false;       // Connection: close
  bool keep_alive = false;  // Connection: keep-alive
  bool expects_continue = false;
  bool has_accept = false;
  bool accepts_json = false;
  bool accepts_events = false;
  std::uint8_t seen = 0;    // bit per Field
  std::uint32_t bytes = 0;  // of the whole head, its empty line included
  std::uint64_t content_length = 0;
  Slice path;       // from its '/' up to '?', or "*"
  Slice query;      // after '?'
  Slice authority;  // of an absolute-form target, else empty
  std::array<Slice, static_cast<std::size_t>(Field::count_)> fields{};
  static_assert(static_cast<std::size_t>(Field::count_) <= 8, "bits of seen");

  bool has(Field field) const noexcept { return (seen >> static_cast<unsigned>(field) & 1u) != 0; }
  Slice operator[](Field field) const noexcept { return fields[static_cast<std::size_t>(field)]; }
  bool persistent() const noexcept { return minor == 1 ? !close : keep_alive && !close; }
};

class HeadParser {
 public:
  enum class Result : std::uint8_t { more, done, error };

  // limit: bytes of the whole head; beyond it the answer is 431.
  explicit HeadParser(std::uint32_t limit) noexcept : limit_(limit) {}

  // `data` holds everything received since the request's first byte (and maybe what follows the
  // head); each byte is looked at once, however it is cut into pieces.
  Result advance(std::string_view data) noexcept;

  const RequestHead &head() const noexcept { return head_; }
  // The HTTP status of the refusal, after Result::error.
  int status() const noexcept { return status_; }

 private:
  bool take_line(std::string_view data, std::size_t end) noexcept;
  bool take_request_line(std::string_view line, std::uint32_t at) noexcept;
  bool take_target(std::string_view target, std::uint32_t at) noexcept;
  bool take_field(std::string_view line, std::uint32_t at) noexcept;
  bool take_known(std::string_view name, std::string_view value, std::uint32_t at) noexcept;
  bool keep(Field field, std::string_view value, std::uint32_t at) noexcept;
  bool take_length(std::string_view value) noexcept;
  bool finish() noexcept;
  bool refuse(int status) noexcept {
    status_ = status;
    return false;
  }

  RequestHead head_;
  std::uint32_t limit_;
  std::uint32_t line_ = 0;     // where the line being read starts
  std::uint32_t scanned_ = 0;  // no line feed before this, from line_ on
  int status_ = 0;
  bool request_line_ = false;  // has been read
  bool skipped_line_ = false;  // one empty line before the request line is allowed
  bool done_ = false;
};

}  // namespace http_codec
