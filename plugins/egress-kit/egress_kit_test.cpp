// Tests the validation of endpoints and the sending of POST requests.
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <optional>

#include "egress-kit/post.hpp"
#include "egress-kit/testing.hpp"

using namespace egress;
using egress::testing::FakeHttp;

namespace {

std::string read(const std::string &json, Endpoint *out) {
  rapidjson::Document root;
  root.Parse(json.data(), json.size());
  REQUIRE(root.IsObject());
  return read_endpoint(root, out);
}
std::string wrong(const std::string &json) {
  Endpoint ignored;
  return read(json, &ignored);
}

struct World {
  bh::testing::FakeHost fake;
  FakeHttp http{fake};
  bh::Host host{fake.host()};
  Endpoint endpoint;
  std::optional<Post::Answer> got;

  explicit World(const std::string &json = R"({"url":"https://x/y","timeout_ms":500})") {
    REQUIRE(read(json, &endpoint).empty());
  }
  std::unique_ptr<Post> post(std::uint64_t max_body = 100) {
    auto out = std::make_unique<Post>(host, endpoint, max_body,
                                      [this](Post::Answer &&answer) { got = std::move(answer); });
    out->start("{}");
    CHECK_FALSE(got.has_value());
    return out;
  }
  bool ended() {
    return fake.run_until([&] { return got.has_value(); }, 5000);
  }
};

}  // namespace

TEST_CASE("an endpoint must use HTTPS, be on this machine, or be a Unix socket") {
  for (const char *good :
       {R"({"url":"https://pdp.example/v1"})", R"({"url":"http://127.0.0.1:8181/v1"})",
        R"({"url":"http://127.9.9.9"})", R"({"url":"http://[::1]:8181/v1"})",
        R"({"url":"http://localhost:1/"})", R"({"url":"http://any/v1","socket":"/run/x"})"}) {
    INFO(good);
    CHECK(wrong(good).empty());
  }
  for (const char *bad :
       {R"({})", R"({"url":7})", R"({"url":"http://pdp.example/"})",
        R"({"url":"http://10.0.0.1/"})", R"({"url":"http://127.0.0.1.example.org/"})",
        R"({"url":"http://localhost@x.org/"})", R"({"url":"https://user:password@x.org/"})",
        R"({"url":"https:///x"})", R"({"url":"http://127.0.0.1#/x","socket":"/run/x"})",
        R"({"url":"https://x.org#@y.org/"})", R"({"url":"https://x.org/a#b"})",
        R"({"url":"ftp://x.org/"})", R"({"url":"https://x.org/a b"})",
        R"({"url":"https://x.org/","socket":"/run/x"})",
        R"({"url":"http://x/","socket":"relative"})"}) {
    INFO(bad);
    CHECK_FALSE(wrong(bad).empty());
  }
  CHECK(wrong(R"({"url":"https://user:password@x.org/"})").find("password") == std::string::npos);
}

TEST_CASE("requests have the configured headers, except protocol headers") {
  const auto with = [](const std::string &headers) {
    return wrong(R"({"url":"https://x/","headers":)" + headers + "}");
  };
  CHECK(with(R"({"Authorization":"Bearer secret"})").empty());
  CHECK_FALSE(with(R"({"Content-Length":"1"})").empty());
  CHECK_FALSE(with(R"({"a b":"1"})").empty());
  CHECK_FALSE(with(R"({"a":1})").empty());
  const std::string bad = with(R"({"Authorization":"secret\n"})");
  CHECK_FALSE(bad.empty());
  CHECK(bad.find("secret") == std::string::npos);
  CHECK_FALSE(wrong(R"({"url":"https://x/","timeout_ms":5})").empty());
}

TEST_CASE("the endpoint's display name contains no credentials") {
  Endpoint e;
  REQUIRE(read(R"({"url":"https://pdp.example:8443/secret?token=1"})", &e).empty());
  CHECK(e.shown() == "https://pdp.example:8443");
}

TEST_CASE("a POST is sent once, is limited, and follows no redirects") {
  World w(R"({"url":"https://x/y","timeout_ms":500,"headers":{"Authorization":"Bearer t"}})");
  const auto post = w.post();
  REQUIRE(w.http.requests.size() == 1);
  const FakeHttp::Request &r = w.http.requests[0];
  CHECK(r.method == "POST");
  CHECK(r.url == "https://x/y");
  CHECK(r.body == "{}");
  CHECK(r.headers.at("Authorization") == "Bearer t");
  CHECK(r.headers.at("content-type") == "application/json");
  CHECK(r.flags == BH_HTTP_NO_PROXY);
  CHECK(r.total_timeout_ms == 500);
  CHECK(r.max_body_bytes == 100);
  CHECK(r.max_redirects == 0);
  w.http.answer(0, 302, "ok", {{"Retry-After", "7"}});
  REQUIRE(w.ended());
  CHECK(w.got->status == 302);
  CHECK(w.got->body == "ok");
  CHECK(w.got->problem.empty());
  CHECK(w.got->retry_after_s == 7);
}

TEST_CASE("exceptions do not reach the host") {
  World w;
  bool told = false;
  Post post(w.host, w.endpoint, 100, [&](Post::Answer &&) {
    told = true;
    throw std::bad_alloc();
  });
  post.start("{}");
  w.http.answer(0, 200, "ok");
  CHECK(w.fake.run_until([&] { return told; }, 5000));
}

TEST_CASE("errors are reported") {
  World w;
  SECTION("the client rejects the request") {
    w.http.refuses = "no more requests";
    const auto post = w.post();
    REQUIRE(w.ended());
    CHECK(w.got->problem == "no more requests");
  }
  SECTION("the request is interrupted") {
    const auto post = w.post();
    w.http.end(0, "connection refused");
    REQUIRE(w.ended());
    CHECK(w.got->problem == "connection refused");
  }
  SECTION("the response is too large") {
    const auto post = w.post(4);
    w.http.answer(0, 200, "12345");
    REQUIRE(w.ended());
    CHECK_FALSE(w.got->problem.empty());
  }
  SECTION("the host has no HTTP client") {
    w.fake.add_ext(BH_EXT_HOST_HTTP, nullptr);
    const auto post = w.post();
    REQUIRE(w.ended());
    CHECK(w.got->problem == "the host has no HTTP client");
  }
}

TEST_CASE("an endpoint on this machine must resolve to a loopback address") {
  World w(R"({"url":"http://localhost:1/"})");
  const auto post = w.post();
  const FakeHttp::Request &r = w.http.requests[0];
  const auto address = [&](const char *text) {
    return r.handler->check_address(r.user, bh::str("localhost"), bh::str(text), 1);
  };
  CHECK(address("127.0.0.1") == BH_OK);
  CHECK(address("::1") == BH_OK);
  CHECK(address("192.0.2.1") == BH_E_DENIED);
  CHECK(address("::ffff:192.0.2.1") == BH_E_DENIED);
}

TEST_CASE("destroying a Post cancels its request") {
  World w;
  w.post().reset();
  CHECK(w.http.open() == 0);
  w.fake.run_for(1);
  CHECK_FALSE(w.got.has_value());
}

namespace {

// A server at the other end of a socket pair.
struct SocketWorld {
  bh::testing::FakeHost fake;
  bh::Host host{fake.host()};
  int ends[2] = {-1, -1};
  std::optional<egress::SocketPost::Answer> got;
  std::unique_ptr<egress::SocketPost> post;

  explicit SocketWorld(std::uint64_t timeout_ms = 5'000, std::uint64_t max_body = 100) {
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0);
    post = std::make_unique<egress::SocketPost>(
        host, ends[0], "POST / HTTP/1.1\r\n\r\n", max_body, timeout_ms,
        [this](egress::SocketPost::Answer &&answer) { got = std::move(answer); });
  }
  ~SocketWorld() {
    post.reset();
    CHECK(fake.watches() == 0);
    CHECK(fake.timers() == 0);
    close_server();
  }
  void close_server() {
    if (ends[1] >= 0) ::close(ends[1]);
    ends[1] = -1;
  }
  void respond(std::string_view text) {
    REQUIRE(::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  }
  bool ended() {
    return fake.run_until([this] { return got.has_value(); }, 20'000);
  }
};

}  // namespace

TEST_CASE("over a socket, a response is read whether or not it is split") {
  SocketWorld w;
  SECTION("in one piece") {
    w.respond("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
  }
  SECTION("byte by byte") {
    for (const char c : std::string("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")) {
      w.fake.run_for(1);
      CHECK_FALSE(w.got.has_value());
      w.respond({&c, 1});
    }
  }
  SECTION("in chunks") {
    w.respond("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n");
    w.fake.run_for(1);
    w.respond("1\r\nk\r\n0\r\n\r\n");
  }
  SECTION("delimited by the end of the connection") {
    w.respond("HTTP/1.0 200 OK\r\n\r\nok");
    w.close_server();
  }
  REQUIRE(w.ended());
  CHECK(w.got->problem == "");
  CHECK(w.got->status == 200);
  CHECK(w.got->body == "ok");
  if (w.ends[1] < 0) return;
  char sent[64];
  const ssize_t n = ::read(w.ends[1], sent, sizeof sent);
  CHECK(std::string(sent, static_cast<std::size_t>(n)) == "POST / HTTP/1.1\r\n\r\n");
}

TEST_CASE("over a socket, an incomplete response is an error without a body") {
  const auto problem = [](std::string_view text, bool closed) {
    SocketWorld w(closed ? 5'000 : 50);
    w.respond(text);
    if (closed) w.close_server();
    REQUIRE(w.ended());
    CHECK(w.got->body.empty());
    return w.got->problem;
  };
  CHECK(problem("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", true) ==
        "the connection was closed before the response was complete");
  CHECK(problem("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", false) == "timed out");
  CHECK(problem("", true) == "the connection was closed before the response was complete");
  CHECK(problem("", false) == "timed out");
  CHECK(problem("SSH-2.0-x\r\n\r\n", true).starts_with("invalid HTTP response"));
  CHECK(problem("HTTP/1.1 200 OK\r\nContent-Length: 101\r\n\r\n", false) ==
        "the response body is larger than 100 bytes");
  CHECK(problem("HTTP/1.1 200 OK\r\nx: " + std::string(70'000, 'x'), false) != "");
}

TEST_CASE("over a socket, redirects and retries are left to the caller") {
  SocketWorld w;
  w.respond("HTTP/1.1 503 No\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n");
  REQUIRE(w.ended());
  CHECK(w.got->status == 503);
  CHECK(w.got->retry_after == "7");
}

TEST_CASE("over a socket, the length of a response without a body is not limited") {
  const auto *head = GENERATE("HTTP/1.1 204 No Content\r\nContent-Length: 101\r\n\r\n",
                              "HTTP/1.1 304 Not Modified\r\nContent-Length: 101\r\n\r\n");
  SocketWorld w;
  w.respond(head);
  REQUIRE(w.ended());
  CHECK(w.got->problem == "");
  CHECK(w.got->body.empty());
}
