// Measures how many nanoseconds this library and Boost.Beast take to parse typical heads. For
// requests, Beast is also measured together with a scan of the raw head. The gateway would need
// this scan, because Beast accepts bare LF, folded lines and control characters.
#include <algorithm>
#include <array>
#include <boost/beast/http/basic_parser.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "http-codec/request_head.hpp"
#include "http-codec/response_head.hpp"
#include "http-codec/text.hpp"

namespace {

namespace beast = boost::beast::http;
using boost::system::error_code;
using View = boost::core::string_view;

constexpr std::string_view express =
    "HTTP/1.1 200 OK\r\nX-Powered-By: Express\r\nContent-Type: application/json\r\n"
    "mcp-session-id: 7f2c1d9e-5b1a-4c57-9a0e-0d3f6f0f7f11\r\nContent-Length: 1187\r\n"
    "Date: Sat, 21 Nov 2026 23:05:11 GMT\r\nConnection: keep-alive\r\nKeep-Alive: "
    "timeout=5\r\n\r\n";
constexpr std::string_view minimal =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1187\r\n\r\n";
// The head of a request from the TypeScript SDK on Node, and the head of a request from a client
// that sends few fields.
constexpr std::string_view node =
    "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:8808\r\nconnection: keep-alive\r\n"
    "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
    "mcp-session-id: 7f2c1d9e-5b1a-4c57-9a0e-0d3f6f0f7f11\r\nmcp-protocol-version: 2025-11-25\r\n"
    "accept-language: *\r\nsec-fetch-mode: cors\r\nuser-agent: node\r\n"
    "accept-encoding: gzip, deflate\r\ncontent-length: 112\r\n\r\n";
constexpr std::string_view plain =
    "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:8808\r\nContent-Type: application/json\r\n"
    "Accept: application/json, text/event-stream\r\nContent-Length: 112\r\n\r\n";

// Beast's parser with minimal work: the callback for each field does nothing.
template <bool is_request>
class Beast final : public beast::basic_parser<is_request> {
 public:
  Beast() { this->skip(true); }

 private:
  void on_request_impl(beast::verb, View, View, int, error_code &) override {}
  void on_response_impl(int, View, int, error_code &) override {}
  void on_field_impl(beast::field, View, View, error_code &) override {}
  void on_header_impl(error_code &) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const &, error_code &) override {}
  std::size_t on_body_impl(View s, error_code &) override { return s.size(); }
  void on_chunk_header_impl(std::uint64_t, View, error_code &) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View s, error_code &) override { return s.size(); }
  void on_finish_impl(error_code &) override {}
};

// Extends Beast's parser to store views of the fields that the transport uses.
class Kept final : public beast::basic_parser<true> {
 public:
  Kept() { skip(true); }
  std::array<View, 8> fields;
  bool json = false, events = false;

 private:
  void keep(std::size_t i, View value, error_code &error) {
    if (fields[i].data() != nullptr) error = beast::error::bad_field;
    fields[i] = value;
  }
  void on_request_impl(beast::verb, View, View, int, error_code &) override {}
  void on_response_impl(int, View, int, error_code &) override {}
  void on_field_impl(beast::field field, View name, View value, error_code &error) override {
    const std::string_view token(name.data(), name.size());
    switch (field) {
      case beast::field::host:
        return keep(0, value, error);
      case beast::field::origin:
        return keep(1, value, error);
      case beast::field::authorization:
        return keep(2, value, error);
      case beast::field::content_type:
        return keep(3, value, error);
      case beast::field::accept:
        return http_codec::for_each_element({value.data(), value.size()}, [&](auto type) {
          json = json || http_codec::equals_lower(type, "application/json");
          events = events || http_codec::equals_lower(type, "text/event-stream");
        });
      case beast::field::unknown:
        if (http_codec::equals_lower(token, "mcp-session-id")) return keep(4, value, error);
        if (http_codec::equals_lower(token, "mcp-protocol-version")) return keep(5, value, error);
        if (http_codec::equals_lower(token, "last-event-id")) return keep(6, value, error);
        if (http_codec::equals_lower(token, "sec-fetch-site")) return keep(7, value, error);
        return;
      default:
        return;
    }
  }
  void on_header_impl(error_code &) override {}
  void on_body_init_impl(boost::optional<std::uint64_t> const &, error_code &) override {}
  std::size_t on_body_impl(View s, error_code &) override { return s.size(); }
  void on_chunk_header_impl(std::uint64_t, View, error_code &) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, View s, error_code &) override { return s.size(); }
  void on_finish_impl(error_code &) override {}
};

// Returns true if all lines end with CR LF, no line is folded, and the head has no other control
// characters.
bool scan_raw(std::string_view head) {
  const char *at = head.data(), *const end = at + head.size();
  while (at < end) {
    at = http_codec::find_control(at, end);
    if (end - at < 2 || at[0] != '\r' || at[1] != '\n') return false;
    at += 2;
    if (at < end && (*at == ' ' || *at == '\t')) return false;
  }
  return true;
}

std::uint64_t sum = 0;

void require(bool holds) {
  if (!holds) std::abort();
}

template <class F>
double round_ns(F &&f) {
  constexpr int n = 50;
  const auto from = std::chrono::steady_clock::now();
  for (int i = 0; i < n; ++i) f();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - from;
  return took.count() / n;
}

// Prints the best time from many short rounds, in which the parsers alternate. The best time is the
// one with the least interference from other processes.
template <class... F>
void measure(const char *kind, const char *name, std::string_view head, F &&...f) {
  std::array<double, sizeof...(F)> best;
  best.fill(1e9);
  for (int round = 0; round < 20'000; ++round) {
    std::size_t i = 0;
    ((best[i] = std::min(best[i], round_ns(f)), ++i), ...);
  }
  std::printf("| %s %s | %zu |", kind, name, head.size());
  for (const double ns : best) std::printf(" %.0f |", ns);
  std::puts("");
}

template <class Parser>
void run_beast(std::string_view head) {
  Parser parser;
  error_code error;
  sum += parser.put(boost::asio::const_buffer(head.data(), head.size()), error);
  require(!error && parser.is_header_done());
}

void measure_request(const char *name, std::string_view head) {
  const auto own = [&] {
    http_codec::HeadParser parser(32u << 10);
    require(parser.advance(head) == http_codec::HeadParser::Result::done);
    sum += parser.head().content_length;
  };
  const auto scanned = [&] {
    require(scan_raw(head));
    run_beast<Kept>(head);
  };
  measure(
      "request", name, head, own, [&] { run_beast<Beast<true>>(head); },
      [&] { run_beast<Kept>(head); }, scanned);
}

void measure_response(const char *name, std::string_view head) {
  const auto own = [&] {
    http_codec::ResponseHead out;
    std::size_t used = 0;
    const char *why = nullptr;
    require(http_codec::parse_head(head, &out, &used, &why) == http_codec::ParseResult::complete);
    sum += out.content_length;
  };
  measure("response", name, head, own, [&] { run_beast<Beast<false>>(head); });
}

}  // namespace

int main() {
  std::puts("| head | bytes | own | Beast | keeping the fields | and behind a scan |");
  measure_request("plain", plain);
  measure_request("node", node);
  measure_response("minimal", minimal);
  measure_response("express", express);
  std::printf("(%llu)\n", static_cast<unsigned long long>(sum));
}
