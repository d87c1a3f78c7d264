// Tests the limits on memory for incomplete requests.
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <string>

#include "http-codec/request_feed.hpp"

using namespace http_codec;
using Result = RequestFeed::Result;

namespace {

constexpr std::uint64_t mib = 1u << 20;

std::string head(std::uint64_t length) {
  return "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + std::to_string(length) +
         "\r\n\r\n";
}

Result feed_all(RequestFeed &feed, const std::string &text) {
  std::string_view in = text;
  return feed.feed(in);
}

}  // namespace

TEST_CASE("an announced length does not reserve memory") {
  BodyBudget budget(mib);
  const FeedLimits limits{.head_bytes = 512, .body_bytes = 64 * mib, .budget = &budget};
  RequestFeed feed(limits);
  REQUIRE(feed_all(feed, head(64 * mib)) == Result::more);
  CHECK(feed.head_known());
  CHECK(feed.text(Field::host) == "localhost");
  CHECK(budget.used() == 0);
}

TEST_CASE("a body's buffer grows by doubling, and the body remains intact") {
  const bool direct = GENERATE(true, false);
  BodyBudget budget;
  const FeedLimits limits{.head_bytes = 512, .body_bytes = 64 * mib, .budget = &budget};
  std::string body;
  while (body.size() < 40 * mib) body += std::to_string(body.size()) + ",";
  RequestFeed feed(limits);
  REQUIRE(feed_all(feed, head(body.size()) + body.substr(0, 10)) == Result::more);
  std::set<std::uint64_t> sizes;
  std::size_t at = 10;
  Result result = Result::more;
  while (at < body.size()) {
    REQUIRE(result == Result::more);
    std::size_t n = std::min<std::size_t>(body.size() - at, 100'000);
    if (direct) {
      const auto room = feed.room();
      REQUIRE(room.size() >= std::min<std::size_t>(body.size() - at, 64u << 10));
      n = std::min(n, room.size());
      std::memcpy(room.data(), body.data() + at, n);
      result = feed.filled(n);
    } else {
      result = feed_all(feed, body.substr(at, n));
    }
    at += n;
    sizes.insert(budget.used());
  }
  REQUIRE(result == Result::request);
  CHECK(feed.body() == body);
  CHECK(feed.text(Field::host) == "localhost");
  CHECK(sizes.size() <= 8);
  CHECK(budget.used() <= body.size() + limits.head_bytes);
  feed.next();
  CHECK(budget.used() == 0);
}

TEST_CASE("memory for a body of up to a megabyte is reserved immediately") {
  const FeedLimits limits{.head_bytes = 512, .body_bytes = 64 * mib};
  RequestFeed feed(limits);
  REQUIRE(feed_all(feed, head(mib)) == Result::more);
  CHECK(feed.room().size() == mib);
}

TEST_CASE("the total of incomplete bodies is limited, and small requests still succeed") {
  BodyBudget budget(3 * mib);
  const FeedLimits limits{.head_bytes = 512, .body_bytes = 64 * mib, .budget = &budget};
  const bool chunked = GENERATE(false, true);
  RequestFeed first(limits);
  REQUIRE(feed_all(first, head(2 * mib) + std::string(2 * mib - 1, 'x')) == Result::more);
  CHECK(budget.used() > mib);

  RequestFeed second(limits);
  const std::string chunk = "100000\r\n" + std::string(mib, 'y') + "\r\n";
  Result result = Result::more;
  if (chunked) {
    result = feed_all(second, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 2 && result == Result::more; ++i) result = feed_all(second, chunk);
  } else {
    result = feed_all(second, head(8 * mib) + std::string(mib, 'y'));
    for (int i = 0; i < 2 && result == Result::more; ++i) {
      CHECK(feed_all(second, std::string(mib, 'y')) == Result::error);
      result = Result::error;
    }
  }
  REQUIRE(result == Result::error);
  CHECK(second.status() == 503);

  RequestFeed small(limits);
  REQUIRE(feed_all(small, head(10'000) + "x") == Result::more);
  CHECK(feed_all(small, std::string(9'999, 'x')) == Result::request);
  CHECK(feed_all(first, "x") == Result::request);
  CHECK(first.body().size() == 2 * mib);
  first.next();
  small.next();
  CHECK(budget.used() == 0);
}

TEST_CASE("closing a connection frees the memory of its request") {
  BodyBudget budget(3 * mib);
  const FeedLimits limits{.head_bytes = 512, .body_bytes = 64 * mib, .budget = &budget};
  {
    RequestFeed feed(limits);
    REQUIRE(feed_all(feed, head(2 * mib) + std::string(mib, 'x')) == Result::more);
    CHECK(budget.used() > 0);
  }
  CHECK(budget.used() == 0);
}
