// Nanoseconds to parse a typical response head: our parser and Boost.Beast's.
#include <boost/beast/http/basic_parser.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "http-codec/response_head.hpp"

namespace {

namespace beast = boost::beast::http;

constexpr std::string_view express =
    "HTTP/1.1 200 OK\r\nX-Powered-By: Express\r\nContent-Type: application/json\r\n"
    "mcp-session-id: 7f2c1d9e-5b1a-4c57-9a0e-0d3f6f0f7f11\r\nContent-Length: 1187\r\n"
    "Date: Sat, 21 Nov 2026 23:05:11 GMT\r\nConnection: keep-alive\r\nKeep-Alive: "
    "timeout=5\r\n\r\n";
constexpr std::string_view minimal =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1187\r\n\r\n";

// The least that Beast's parser can be made to do: it calls back for each field, none is kept.
class Beast final : public beast::basic_parser<false> {
 public:
  Beast() { skip(true); }

 private:
  using code = boost::system::error_code;
  void on_request_impl(beast::verb, boost::core::string_view, boost::core::string_view, int,
                       code &) {}
  void on_response_impl(int, boost::core::string_view, int, code &) {}
  void on_field_impl(beast::field, boost::core::string_view, boost::core::string_view, code &) {}
  void on_header_impl(code &) {}
  void on_body_init_impl(boost::optional<std::uint64_t> const &, code &) {}
  std::size_t on_body_impl(boost::core::string_view s, code &) { return s.size(); }
  void on_chunk_header_impl(std::uint64_t, boost::core::string_view, code &) {}
  std::size_t on_chunk_body_impl(std::uint64_t, boost::core::string_view s, code &) {
    return s.size();
  }
  void on_finish_impl(code &) {}
};

template <class F>
double best_ns(F &&f) {
  double best = 1e9;
  for (int round = 0; round < 500; ++round) {  // short ones: some meet an undisturbed processor
    constexpr int n = 500;
    const auto from = std::chrono::steady_clock::now();
    for (int i = 0; i < n; ++i) f();
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - from;
    best = std::min(best, took.count() / n);
  }
  return best;
}

void measure(const char *name, std::string_view head) {
  std::uint64_t sum = 0;
  const double own = best_ns([&] {
    http_codec::ResponseHead out;
    std::size_t used = 0;
    const char *why = nullptr;
    if (http_codec::parse_head(head, &out, &used, &why) !=
        http_codec::ParseResult::complete) {
      std::abort();
    }
    sum += out.content_length;
  });
  const double other = best_ns([&] {
    Beast parser;
    boost::system::error_code error;
    sum += parser.put(boost::asio::const_buffer(head.data(), head.size()), error);
    if (error || !parser.is_header_done()) std::abort();
  });
  std::printf("%-8s %4zu bytes: own %.0f ns, Beast %.0f ns (%llu)\n", name, head.size(), own, other,
              static_cast<unsigned long long>(sum));
}

}  // namespace

int main() {
  measure("minimal", minimal);
  measure("express", express);
}
