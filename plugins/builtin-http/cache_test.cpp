// Tests the cache and the freshness of responses.
#include "builtin-http/cache.hpp"

#include <catch2/catch.hpp>

#include "builtin-http/freshness.hpp"
#include "builtin-http/testing.hpp"

using namespace builtin_http;
using namespace builtin_http::testing;

namespace {

constexpr std::time_t now = 784'111'777;  // Sun, 06 Nov 1994 08:49:37 GMT
constexpr std::uint64_t second = 1'000'000'000;

Response response(std::vector<Header> headers, std::string body = "x") {
  Response r;
  r.status = 200;
  r.headers = std::move(headers);
  r.body = std::move(body);
  return r;
}

Url url(std::string_view text) {
  Url out;
  std::string problem;
  REQUIRE(parse_url(text, &out, &problem));
  return out;
}

std::uint64_t seconds(std::vector<Header> headers) {
  const Freshness f = freshness_of(response(std::move(headers)), now);
  CHECK(f.store);
  return f.seconds;
}

}  // namespace

TEST_CASE("freshness is computed from the response headers") {
  CHECK(parse_date("Sun, 06 Nov 1994 08:49:37 GMT") == now);
  CHECK(parse_date("0") == -1);
  CHECK(parse_date("Sun, 06 Nov 1994 08:49:37 GMT+1") == -1);
  CHECK(seconds({}) == 0);
  CHECK(seconds({{"Cache-Control", "public, max-age=60"}}) == 60);
  CHECK(seconds({{"Cache-Control", "MAX-AGE=\"60\""}, {"Age", "20"}}) == 40);
  CHECK(seconds({{"Cache-Control", "max-age=60"}, {"Age", "90"}}) == 0);
  CHECK(seconds({{"Cache-Control", "max-age=60"}, {"Cache-Control", "max-age=10"}}) == 10);
  CHECK(seconds({{"Cache-Control", "max-age=60, no-cache"}}) == 0);
  CHECK(seconds({{"Cache-Control", "s-maxage=60"}}) == 0);
  CHECK(seconds({{"Cache-Control", "max-age=-1"}}) == 0);
  CHECK(seconds({{"Cache-Control", "max-age=99999999999999999999"}}) == 7 * 24 * 3600);
  CHECK(seconds({{"Cache-Control", "max-age=0"}, {"Expires", "Sun, 06 Nov 1994 09:49:37 GMT"}}) ==
        0);
  CHECK(seconds({{"Expires", "Sun, 06 Nov 1994 08:50:37 GMT"}}) == 60);
  CHECK(seconds({{"Expires", "0"}}) == 0);
  CHECK(seconds({{"Date", "Sun, 06 Nov 1994 08:49:07 GMT"}, {"Cache-Control", "max-age=60"}}) ==
        30);
  CHECK_FALSE(freshness_of(response({{"Cache-Control", "no-store, max-age=60"}}), now).store);
  CHECK_FALSE(freshness_of(response({{"Vary", "*"}, {"Cache-Control", "max-age=60"}}), now).store);
  Response missing = response({{"Cache-Control", "max-age=60"}});
  missing.status = 404;
  CHECK_FALSE(freshness_of(missing, now).store);
}

TEST_CASE("responses are stored, expire and are evicted") {
  Cache cache(80'000);
  const Url a = url("http://a.test/");
  cache.store(a, response({{"Cache-Control", "max-age=10"}}), 0, now);
  CHECK(cache.find(a, 9 * second).is_fresh);
  CHECK(cache.find(url("http://a.test/?x"), 0).response == nullptr);
  CHECK(cache.find(a, 10 * second).response == nullptr);  // stale, and cannot be revalidated
  cache.store(a, response({{"ETag", "\"1\""}}), 0, now);
  CHECK(cache.find(a, 0).response != nullptr);
  CHECK_FALSE(cache.find(a, 0).is_fresh);
  cache.renew(a, response({{"Cache-Control", "max-age=5"}}), second, now);
  CHECK(cache.find(a, 5 * second).is_fresh);
  CHECK_FALSE(cache.find(a, 6 * second).is_fresh);
  cache.store(a, response({{"Cache-Control", "no-store"}}), 0, now);  // removes the older response
  CHECK(cache.find(a, 0).response == nullptr);
  cache.store(a, response({{"Cache-Control", "max-age=10"}}, std::string(10'000, 'x')), 0, now);
  CHECK(cache.find(a, 0).response == nullptr);  // larger than an eighth of the cache size

  for (int i = 0; i < 20; ++i) {
    const Response r = response({{"Cache-Control", "max-age=10"}}, std::string(6000, 'x'));
    cache.store(url("http://a.test/" + std::to_string(i)), r, 0, now);
    CHECK(cache.find(url("http://a.test/0"), 0).is_fresh);  // used in each iteration
  }
  CHECK(cache.find(url("http://a.test/19"), 0).is_fresh);
  CHECK(cache.find(url("http://a.test/1"), 0).response == nullptr);
}

TEST_CASE("a fresh page is not requested again") {
  Web web;
  web.pages["http://a.test/"] = {.body = "one", .headers = {{"Cache-Control", "max-age=100"}}};
  CHECK(chunk_of(web.url("http://a.test/").text()) == "one");
  web.pages["http://a.test/"].body = "two";
  CHECK(chunk_of(web.url("http://a.test/").text()) == "one");
  CHECK(web.call("grep_http", R"({"url":"http://a.test/","pattern":"one"})")
            .text()
            .find("Matches found: 1") != std::string::npos);
  CHECK(web.asked.size() == 1);
  REQUIRE(web.events.size() == 3);
  CHECK(web.events[1].find("served from the cache") != std::string::npos);
  // Binary content is rejected even if it comes from the cache.
  web.pages["http://a.test/png"] = {
      .type = "image/png", .body = "x", .headers = {{"Cache-Control", "max-age=100"}}};
  CHECK_FALSE(web.fetch(R"("url":"http://a.test/png","format":"raw")").is_error());
  CHECK(error_of(web.url("http://a.test/png")).find("binary content") == 0);
}

TEST_CASE("a stale page is revalidated") {
  Web web;
  web.pages["http://a.test/"] = {.body = "one", .headers = {{"ETag", "\"v1\""}}};
  web.url("http://a.test/");
  web.pages["http://a.test/"] = {.status = 304, .type = "", .headers = {{"ETag", "\"v1\""}}};
  CHECK(chunk_of(web.url("http://a.test/").text()) == "one");
  CHECK(web.sent_headers.find("if-none-match: \"v1\"\n") != std::string::npos);
  web.pages["http://a.test/"] = {.body = "two", .headers = {{"ETag", "\"v2\""}}};
  CHECK(chunk_of(web.url("http://a.test/").text()) == "two");
  web.pages["http://b.test/"] = {.body = "b",
                                 .headers = {{"Last-Modified", "Sun, 06 Nov 1994 08:49:37 GMT"}}};
  web.url("http://b.test/");
  web.url("http://b.test/");
  CHECK(web.sent_headers.find("if-modified-since: Sun, 06 Nov 1994 08:49:37 GMT\n") !=
        std::string::npos);
}

TEST_CASE("other methods and requests with headers are not cached, and caching can be disabled") {
  Web web(R"({"methods":["get"]})");
  web.pages["http://a.test/"] = {.body = "one", .headers = {{"Cache-Control", "max-age=100"}}};
  for (int i = 0; i < 2; ++i) {
    web.call("http_get", R"({"url":"http://a.test/","headers":{"Authorization":"x"}})");
    web.call("http_headers", R"({"url":"http://a.test/","method":"GET"})");
  }
  CHECK(web.asked.size() == 4);
  Web without(R"({"cache_bytes":0})");
  without.pages = web.pages;
  without.url("http://a.test/");
  without.url("http://a.test/");
  CHECK(without.asked.size() == 2);
}
