// Parses the head of an HTTP/1.x request (request line and fields) line by line.
//
// The parser is strict, because the gateway sits between proxies and servers. Anything that two
// parsers may interpret differently is rejected with 400: bare LF, folded lines, a space before a
// colon, two lengths, unknown transfer codings.
//
// Boost.Beast's basic_parser is not used, because it is slower (bench/codec_bench.cpp). This parser
// takes 133 ns for a head of 142 bytes and 313 ns for a head of 346 bytes. Beast takes 213 and 482
// ns if it stores the same fields, and 259 and 589 ns if the raw head is scanned first. This scan
// would be necessary, because Beast accepts bare LF and folded lines.
//
// Performs no I/O and allocates no memory. Only the fields that users of this library need are
// stored. Other fields are validated and skipped.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "http-codec/head_lines.hpp"

namespace http_codec {

enum class Method : std::uint8_t { get, head, post, del, options, other };

// Returns the method's name, such as "GET", or an empty string for Method::other.
std::string_view name_of(Method method) noexcept;

// A range of the request's bytes. It stores an offset instead of a pointer, because the request may
// be moved as more of it arrives.
struct Slice {
  std::uint32_t at = 0;
  std::uint32_t n = 0;
};

// Fields whose values are stored unchanged. Each field may occur only once.
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

struct RequestHead : MessageFields {
  Method method = Method::other;
  std::uint8_t minor = 1;  // minor version of HTTP/1
  bool expects_continue = false;
  bool has_accept = false;
  bool accepts_json = false;
  bool accepts_events = false;
  std::uint8_t seen = 0;    // one bit per Field
  std::uint32_t bytes = 0;  // size of the whole head, including the empty line
  Slice path;               // from '/' up to '?', or "*"
  Slice query;              // text after '?'
  Slice authority;          // authority of an absolute-form target; otherwise empty
  std::array<Slice, static_cast<std::size_t>(Field::count_)> fields{};
  static_assert(static_cast<std::size_t>(Field::count_) <= 8, "bits of seen");

  bool has(Field field) const noexcept { return (seen >> static_cast<unsigned>(field) & 1u) != 0; }
  Slice operator[](Field field) const noexcept { return fields[static_cast<std::size_t>(field)]; }
  bool persistent() const noexcept { return MessageFields::persistent(minor == 0); }
};

class HeadParser {
 public:
  enum class Result : std::uint8_t { more, done, error };

  // `limit` is the maximum size of the head in bytes; larger heads are rejected with 431. If
  // needs_host is true, an HTTP/1.1 request without Host is rejected, as it must be if requests
  // arrive over a network.
  explicit HeadParser(std::uint32_t limit, bool needs_host = true) noexcept
      : limit_(limit), needs_host_(needs_host) {}

  // Parses the complete lines. `data` contains all bytes since the start of the request, and may
  // extend beyond the head. Each byte is scanned only once, however the input is split.
  Result advance(std::string_view data) noexcept;

  const RequestHead &head() const noexcept { return head_; }
  // Valid after Result::error. These functions return the HTTP status of the error response and the
  // reason for the error.
  int status() const noexcept { return status_; }
  const char *why() const noexcept { return why_; }

 private:
  bool read_line(std::string_view line, std::uint32_t at) noexcept;
  bool read_request_line(std::string_view line, std::uint32_t at) noexcept;
  bool read_target(std::string_view target, std::uint32_t at) noexcept;
  bool read_field(std::string_view name, std::string_view value, std::uint32_t at) noexcept;
  bool keep(Field field, std::string_view value, std::uint32_t at) noexcept;
  bool finish() noexcept;
  bool check(const char *why) noexcept { return why == nullptr || refuse(400, why); }
  bool refuse(int status, const char *why) noexcept {
    status_ = status;
    why_ = why;
    return false;
  }

  RequestHead head_;
  HeadLines lines_;
  std::uint32_t limit_;
  bool needs_host_;
  int status_ = 0;
  const char *why_ = nullptr;
  bool request_line_ = false;  // the request line was parsed
  bool skipped_line_ = false;  // an empty line before the request line was skipped
  bool done_ = false;
};

}  // namespace http_codec
