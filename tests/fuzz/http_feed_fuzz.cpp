// Fuzzes the HTTP request parser with split input. Two properties must hold:
//  - The result does not depend on how the input is split.
//  - If this parser and the independent parser of Boost.Beast both accept a request, it has the
//  same
//    body and the same end in both. A difference would enable request smuggling.
//
// The first four bytes of the input select how it is split. The rest is the data of a connection.
#include <boost/beast/http/basic_parser.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "http-codec/request_feed.hpp"

namespace {

namespace http = boost::beast::http;
using boost::beast::error_code;
using http_codec::Field;
using http_codec::RequestFeed;

const http_codec::FeedLimits limits{.head_bytes = 1024, .body_bytes = 2048};

// Returns all properties of a request as text.
std::string describe(const RequestFeed &feed) {
  const auto &head = feed.head();
  std::string out(feed.text(head.path));
  out += '\n';
  out += feed.text(head.query);
  out += '\n';
  out += feed.text(head.authority);
  for (std::size_t i = 0; i < static_cast<std::size_t>(Field::count_); ++i) {
    out += '\n';
    out += feed.text(static_cast<Field>(i));
  }
  const bool flags[] = {head.chunked,      head.has_length,       head.close,
                        head.keep_alive,   head.expects_continue, head.has_accept,
                        head.accepts_json, head.accepts_events,   head.minor == 1};
  for (const bool flag : flags) out += flag ? '1' : '0';
  out += std::to_string(static_cast<int>(head.method));
  out += '\n';
  out += feed.body();
  return out;
}

struct Outcome {
  std::vector<std::string> requests;
  std::vector<std::string> bodies;
  std::vector<std::size_t> ends;  // offset after each request
  int status = 0;
};

class Cuts {
 public:
  explicit Cuts(std::uint32_t seed) : state_(seed | 1) {}
  // With seeds 0 and 1, the input is not split.
  std::size_t next(std::size_t left) {
    if (state_ == 1) return left;
    state_ = state_ * 1664525 + 1013904223;
    const std::size_t most = (state_ >> 28) < 8 ? 4 : 200;
    return std::min<std::size_t>(left, 1 + (state_ >> 8) % most);
  }

 private:
  std::uint32_t state_;
};

Outcome run(std::string_view data, std::uint32_t seed) {
  RequestFeed feed(limits);
  Cuts cuts(seed);
  Outcome out;
  std::size_t at = 0;
  while (at < data.size()) {
    const std::size_t n = cuts.next(data.size() - at);
    // a copy, so that the sanitizer detects views that outlive it
    const std::string piece(data.substr(at, n));
    at += n;
    std::string_view in = piece;
    while (!in.empty()) {
      RequestFeed::Result result;
      if (const auto room = feed.room(); !room.empty() && (seed & 2) != 0) {
        const std::size_t some = std::min(room.size(), in.size());
        std::memcpy(room.data(), in.data(), some);
        in.remove_prefix(some);
        result = feed.filled(some);
      } else {
        result = feed.feed(in);
      }
      if (result == RequestFeed::Result::error) {
        out.status = feed.status();
        return out;
      }
      if (result == RequestFeed::Result::request) {
        out.requests.push_back(describe(feed));
        out.bodies.emplace_back(feed.body());
        out.ends.push_back(at - in.size());
        feed.next();
      }
    }
  }
  return out;
}

class Other : public http::basic_parser<true> {
 public:
  std::string body;

 private:
  using View = boost::beast::string_view;
  void on_request_impl(http::verb, View, View, int, error_code &) override {}
  void on_response_impl(int, View, int, error_code &) override {}
  void on_field_impl(http::field, View, View, error_code &) override {}
  void on_header_impl(error_code &) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const &, error_code &) override {}
  std::size_t on_body_impl(View data, error_code &) override {
    body.append(data.data(), data.size());
    return data.size();
  }
  void on_chunk_header_impl(std::uint64_t, View, error_code &) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View data, error_code &) override {
    body.append(data.data(), data.size());
    return data.size();
  }
  void on_finish_impl(error_code &) override {}
};

void require(bool holds, const char *what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

// Returns true if the error concerns the end of a request. Other differences are permitted: for
// example, Beast rejects a Connection header that is not a list of tokens, but this parser ignores
// it.
bool about_framing(error_code error) {
  return error == http::error::bad_content_length || error == http::error::bad_transfer_encoding ||
         error == http::error::multiple_content_length || error == http::error::bad_chunk ||
         error == http::error::bad_chunk_extension || error == http::error::end_of_stream ||
         error == http::error::partial_message;
}

void compare_with_other(std::string_view request, const std::string &body) {
  // A request may be preceded by an empty line, which Beast rejects.
  if (request.starts_with("\r\n")) request.remove_prefix(2);
  Other other;
  other.eager(true);
  other.header_limit(1u << 20);
  std::size_t at = 0;
  while (at < request.size() && !other.is_done()) {
    error_code error;
    const std::size_t n =
        other.put(boost::asio::buffer(request.data() + at, request.size() - at), error);
    if (error == http::error::need_more) break;
    // Beast parses trailers as header fields, including Content-Length. This parser ignores
    // trailers.
    if (error && other.chunked() && other.body == body) return;
    if (error) return require(!about_framing(error), error.message().c_str());
    if (n == 0) break;
    at += n;
  }
  require(other.is_done(), "Beast waits for more");
  require(at == request.size(), "Beast ends the request earlier");
  require(other.body == body, "Beast reads another body");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  if (size < 4) return 0;
  std::uint32_t seed;
  std::memcpy(&seed, data, 4);
  const std::string_view text(reinterpret_cast<const char *>(data) + 4, size - 4);
  const Outcome whole = run(text, 0);
  for (const std::uint32_t cut : {seed, seed ^ 2u, seed * 7919u + 4u}) {
    const Outcome pieces = run(text, cut);
    require(pieces.status == whole.status, "the cuts change the status");
    require(pieces.requests == whole.requests, "the cuts change a request");
    require(pieces.ends == whole.ends, "the cuts change where a request ends");
  }
  std::size_t start = 0;
  for (std::size_t i = 0; i < whole.ends.size(); ++i) {
    compare_with_other(text.substr(start, whole.ends[i] - start), whole.bodies[i]);
    start = whole.ends[i];
  }
  return 0;
}
