// Tests the complete plugin against servers on loopback addresses.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <map>
#include <thread>

#include "../../connector-http/tests/server.hpp"
#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/abi/plugin.h"
#include "bulkhead/testing/fake_host.hpp"
#include "tls_server.hpp"

extern "C" const bh_entry *bh_static_entry_HttpClient(void);

using connector_http::testing::Peer;
using connector_http::testing::Request;
using connector_http::testing::Server;

namespace {

// Records one request and its result.
struct Call {
  std::uint32_t status = 0;
  std::map<std::string, std::string> headers;
  std::string body, url, text;
  int done = 0, heads = 0;
  bh_status code = BH_OK;
  bh_http_id id = 0;
  std::vector<std::string> addresses;
  bh_status verdict = BH_OK, on_head = BH_OK, on_body = BH_OK;
  std::function<void()> in_body;

  static Call &of(void *user) { return *static_cast<Call *>(user); }
  static bh_status check(void *user, bh_str host, bh_str address, std::uint32_t) {
    of(user).addresses.push_back(std::string(bh::view(host)) + "=" +
                                 std::string(bh::view(address)));
    return of(user).verdict;
  }
  static const bh_http_handler *handler(bool checked) {
    static bh_http_handler table{sizeof table, 0, check, head, piece, end};
    static bh_http_handler unchecked{sizeof table, 0, nullptr, head, piece, end};
    return checked ? &table : &unchecked;
  }
  static bh_status head(void *user, std::uint32_t status, const bh_http_header *headers,
                        std::uint32_t n, bh_str url) {
    Call &c = of(user);
    ++c.heads;
    c.status = status;
    c.url = bh::view(url);
    for (std::uint32_t i = 0; i < n; ++i) {
      c.headers[std::string(bh::view(headers[i].name))] = bh::view(headers[i].value);
    }
    return c.on_head;
  }
  static bh_status piece(void *user, bh_str p) {
    Call &c = of(user);
    c.body.append(bh::view(p));
    if (c.in_body) c.in_body();
    return c.on_body;
  }
  static void end(void *user, const bh_error *error) {
    Call &c = of(user);
    ++c.done;
    if (error != nullptr) {
      c.code = error->code;
      c.text = bh::text(*error);
    }
  }
};

struct Fixture {
  bh::testing::FakeHost host;
  const bh_plugin *plugin = nullptr;
  const bh_http_service *http = nullptr;
  bh_error error = bh::make_error();

  Fixture() {
    REQUIRE(bh_static_entry_HttpClient()->create("http-client", host.host(), &plugin, &error) ==
            BH_OK);
    REQUIRE(plugin->configure(plugin->self, bh::str("{}"), &error) == BH_OK);
    REQUIRE(plugin->start(plugin->self, &error) == BH_OK);
    http = static_cast<const bh_http_service *>(plugin->get_ext(plugin->self, BH_EXT_HTTP_SERVICE));
  }
  ~Fixture() {
    plugin->stop(plugin->self);
    CHECK(host.watches() == 0);
    CHECK(host.timers() == 0);
    CHECK(host.faults().empty());
    plugin->destroy(plugin->self);
  }

  static bh_http_request request(const std::string &url, const char *method = "GET") {
    bh_http_request r{};
    r.size = sizeof r;
    r.method = bh::str(method);
    r.url = bh::str(url);
    r.connect_timeout_ms = 3000;
    r.total_timeout_ms = 5000;
    return r;
  }
  bh_status start(Call &call, const bh_http_request &r, bool checked = false) {
    error = bh::make_error();
    return http->start(plugin->self, &r, Call::handler(checked), &call, &call.id, &error);
  }
  Call &run(Call &call, const bh_http_request &r, bool checked = false) {
    REQUIRE(start(call, r, checked) == BH_OK);
    CHECK(call.done == 0);
    REQUIRE(host.run_until([&] { return call.done > 0; }, 20'000));
    CHECK(call.done == 1);
    CHECK(http->cancel(plugin->self, call.id) == BH_STALE);
    return call;
  }
  Call &get(Call &call, const std::string &url) { return run(call, request(url)); }
};

// Sets an environment variable for one scope.
class Environment {
 public:
  Environment(const char *name, const std::string &value) : name_(name) {
    const char *before = std::getenv(name);
    had_ = before != nullptr;
    if (had_) before_ = before;
    ::setenv(name, value.c_str(), 1);
  }
  ~Environment() { had_ ? ::setenv(name_, before_.c_str(), 1) : ::unsetenv(name_); }

 private:
  const char *name_;
  bool had_ = false;
  std::string before_;
};

}  // namespace

TEST_CASE("GET and POST send headers and reuse the connection") {
  Server server([](const Request &r, Peer &peer) {
    peer.answer(r.method == "POST" ? 201 : 200, r.method + r.body, "X-Answer: yes\r\n");
  });
  Fixture f;
  Call a;
  f.get(a, server.url("/a?b=c"));
  CHECK(a.status == 200);
  CHECK(a.body == "GET");
  CHECK(a.headers["X-Answer"] == "yes");
  CHECK(a.url == server.url("/a?b=c"));
  CHECK(a.heads == 1);
  Call b;
  const std::string url = server.url(), body(300'000, 'b');
  const bh_http_header headers[] = {{bh::str("Authorization"), bh::str("Bearer x")},
                                    {bh::str("X-Empty"), bh::str("")}};
  bh_http_request r = Fixture::request(url, "POST");
  r.headers = headers;
  r.header_count = 2;
  r.body = bh::str(body);
  f.run(b, r);
  CHECK(b.status == 201);
  CHECK(b.body == "POST" + body);
  CHECK(server.connections() == 1);
  const auto seen = server.requests();
  CHECK(seen[0].target == "/a?b=c");
  CHECK(seen[1].header("authorization") == "Bearer x");
  CHECK(seen[1].headers.count("expect") == 0);
}

TEST_CASE("invalid requests are rejected before anything is sent") {
  Fixture f;
  const std::string url = GENERATE(as<std::string>{}, "ftp://127.0.0.1/", "file:///etc/passwd",
                                   "http://u:p@127.0.0.1/", "", "x", "http://127.0.0.1/\r\nX: y");
  Call c;
  CHECK(f.start(c, Fixture::request(url)) == BH_E_INVALID);
  const std::string good = "http://127.0.0.1:1/";
  for (const auto &[name, value] : std::map<std::string, std::string>{
           {"A", "b\r\nC: d"}, {"A b", "c"}, {"Host", "x"}, {"Content-Length", "1"}, {"", "x"}}) {
    const bh_http_header header{bh::str(name), bh::str(value)};
    bh_http_request r = Fixture::request(good);
    r.headers = &header;
    r.header_count = 1;
    CHECK(f.start(c, r) == BH_E_INVALID);
  }
}

TEST_CASE("redirects are returned by default, followed on request, and limited") {
  Server server([](const Request &r, Peer &peer) {
    const int n = std::atoi(r.target.c_str() + 1);
    if (n == 0) return peer.answer(200, r.method + r.body);
    peer.answer(n > 90 ? 307 : 302, "moved",
                "Location: /" + std::to_string(n > 90 ? 0 : n - 1) + "\r\n");
  });
  Fixture f;
  Call plain;
  f.get(plain, server.url("/1"));
  CHECK(plain.status == 302);
  CHECK(plain.body == "moved");
  std::string url = server.url("/3");
  bh_http_request r = Fixture::request(url);
  r.max_redirects = 3;
  Call followed;
  f.run(followed, r);
  CHECK(followed.status == 200);
  CHECK(followed.heads == 1);
  CHECK(followed.body == "GET");
  CHECK(followed.url == server.url("/0"));
  r.max_redirects = 2;
  Call bounded;
  f.run(bounded, r);
  CHECK(bounded.code == BH_E_LIMIT);
  url = server.url("/91");
  r = Fixture::request(url, "POST");
  r.max_redirects = 1;
  r.body = bh::str("payload");
  Call posted;
  f.run(posted, r);
  CHECK(posted.body == "POSTpayload");
}

TEST_CASE("headers that may contain credentials are not sent to other origins") {
  Server other([](const Request &, Peer &peer) { peer.answer(200, "other"); });
  Server server([&](const Request &, Peer &peer) {
    peer.answer(302, "", "Location: " + other.url("/x?secret=1") + "\r\n");
  });
  const bool secret = GENERATE(true, false);
  Fixture f;
  const bh_http_header header{bh::str(secret ? "X-Api-Key" : "Accept"), bh::str("k3y")};
  const std::string url = server.url();
  bh_http_request r = Fixture::request(url);
  r.headers = &header;
  r.header_count = 1;
  r.max_redirects = 3;
  Call c;
  f.run(c, r);
  if (secret) {
    CHECK(c.code == BH_E_DENIED);
    CHECK(other.requests().empty());
    CHECK(c.text.find("secret") == std::string::npos);
    CHECK(c.text.find("k3y") == std::string::npos);
  } else {
    CHECK(c.body == "other");
  }
}

TEST_CASE("addresses are checked before connecting and before a connection is reused") {
  Server server([](const Request &, Peer &peer) { peer.answer(200, "ok"); });
  Fixture f;
  Call denied;
  denied.verdict = BH_E_DENIED;
  const std::string url = "http://localhost:" + std::to_string(server.port()) + "/";
  f.run(denied, Fixture::request(url), true);
  CHECK(denied.code == BH_E_DENIED);
  CHECK(server.connections() == 0);
  Call open;
  f.run(open, Fixture::request(url));
  CHECK(open.status == 200);
  Call again;
  again.verdict = BH_E_DENIED;
  f.run(again, Fixture::request(url), true);
  CHECK(again.code == BH_E_DENIED);
  CHECK_FALSE(again.addresses.empty());
  CHECK(server.requests().size() == 1);
  Call allowed;
  f.run(allowed, Fixture::request(url), true);
  CHECK(allowed.status == 200);
  CHECK(allowed.addresses.back() == "localhost=127.0.0.1");
}

TEST_CASE("bodies are limited, before and after decompression") {
  // 100,000 bytes of 'a', compressed with gzip to 133 bytes.
  const unsigned char packed[] = {0x1f, 0x8b, 0x08, 0,    0,    0,    0,    0,    0x02,
                                  0x03, 0xed, 0xc1, 0x31, 0x01, 0,    0,    0,    0xc2,
                                  0xa0, 0xac, 0xeb, 0x5f, 0xc2, 0x1a, 0x1e, 0x40, 0x01};
  std::string gzip(reinterpret_cast<const char *>(packed), sizeof packed);
  gzip.resize(133 - 10, '\0');
  gzip += std::string("\xaf\x06\x87\xfa\xe2\x1b\xa0\x86\x01\x00", 10);
  Server server([&](const Request &r, Peer &peer) {
    if (r.target == "/gzip") return peer.answer(200, gzip, "Content-Encoding: gzip\r\n");
    peer.answer(200, std::string(5000, 'x'));
  });
  Fixture f;
  std::string url = server.url("/plain");
  bh_http_request r = Fixture::request(url);
  r.max_body_bytes = 4999;
  Call plain;
  CHECK(f.run(plain, r).code == BH_E_LIMIT);
  r.max_body_bytes = 5000;
  Call fits;
  CHECK(f.run(fits, r).body.size() == 5000);

  url = server.url("/gzip");
  r = Fixture::request(url);
  Call raw;
  CHECK(f.run(raw, r).body == gzip);
  r.flags = BH_HTTP_DECOMPRESS;
  Call decoded;
  CHECK(f.run(decoded, r).body == std::string(100'000, 'a'));
  r.max_body_bytes = 50'000;
  Call bomb;
  CHECK(f.run(bomb, r).code == BH_E_LIMIT);
  CHECK(bomb.body.size() <= 50'000);
}

TEST_CASE("a callback may stop, cancel and start requests") {
  Server server([](const Request &r, Peer &peer) {
    if (r.target != "/stream") return peer.answer(200, "short");
    peer.begin_events();
    for (int i = 0; i < 1000 && peer.open(); ++i) peer.event(std::string(1000, 'e'));
    peer.wait_closed();
  });
  Fixture f;
  Call no_head;
  no_head.on_head = BH_E_CANCELLED;
  f.get(no_head, server.url("/stream"));
  CHECK(no_head.code == BH_E_CANCELLED);
  CHECK(no_head.body.empty());
  Call no_body;
  no_body.on_body = BH_E_CANCELLED;
  f.get(no_body, server.url("/stream"));
  CHECK(no_body.code == BH_E_CANCELLED);

  Call cancelled, second;
  const std::string url = server.url("/stream"), other = server.url("/other");
  cancelled.in_body = [&] {
    if (second.id != 0) return;
    CHECK(f.http->cancel(f.plugin->self, cancelled.id) == BH_OK);
    CHECK(f.http->cancel(f.plugin->self, cancelled.id) == BH_STALE);
    REQUIRE(f.start(second, Fixture::request(other)) == BH_OK);
  };
  REQUIRE(f.start(cancelled, Fixture::request(url)) == BH_OK);
  REQUIRE(f.host.run_until([&] { return second.done == 1; }, 20'000));
  CHECK(second.body == "short");
  const std::size_t so_far = cancelled.body.size();
  f.host.run_for(20);
  CHECK(cancelled.done == 0);
  CHECK(cancelled.body.size() == so_far);
}

TEST_CASE("requests started in a callback begin in order") {
  std::array<Call, 4> next;
  std::atomic<std::size_t> arrived = 0;
  Server server([&](const Request &r, Peer &peer) {
    // The server responds only after all requests have arrived, so each request needs its own
    // connection.
    if (r.target != "/first") {
      ++arrived;
      while (arrived < next.size()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    peer.answer(200, r.target);
  });
  Fixture f;
  Call first;
  std::vector<std::string> urls;
  for (std::size_t i = 0; i < next.size(); ++i) urls.push_back(server.url("/" + std::to_string(i)));
  first.in_body = [&] {
    for (std::size_t i = 0; i < next.size(); ++i) {
      REQUIRE(f.start(next[i], Fixture::request(urls[i])) == BH_OK);
    }
  };
  f.get(first, server.url("/first"));
  REQUIRE(f.host.run_until(
      [&] { return next[0].done + next[1].done + next[2].done + next[3].done == 4; }, 20'000));
  std::map<int, std::string> by_connection;
  for (const Request &r : server.requests()) by_connection[r.connection] += r.target;
  std::string order;
  for (const auto &[number, targets] : by_connection) order += targets;
  CHECK(order == "/first/0/1/2/3");
}

TEST_CASE("a POST is not retried when the server closes a reused connection") {
  Server server([](const Request &r, Peer &peer) {
    if (r.method == "GET") return peer.answer(200, "ok");
    peer.reset();
  });
  Fixture f;
  Call first;
  f.get(first, server.url());
  const std::string url = server.url();
  bh_http_request r = Fixture::request(url, "POST");
  r.body = bh::str("once");
  Call c;
  f.run(c, r);
  CHECK(c.code == BH_E_IO);
  CHECK(c.text.find("may have run") != std::string::npos);
  CHECK(server.requests().size() == 2);
}

TEST_CASE("an unreachable server and a time-out return different errors") {
  int port = 0;
  {
    port = Server([](const Request &, Peer &) {}).port();
  }
  Server silent([](const Request &, Peer &peer) { peer.wait_closed(); });
  Fixture f;
  Call refused;
  f.get(refused, "http://127.0.0.1:" + std::to_string(port) + "/p?token=secret");
  CHECK(refused.code == BH_E_UNAVAILABLE);
  CHECK(refused.text.find("127.0.0.1") != std::string::npos);
  CHECK(refused.text.find("secret") == std::string::npos);
  const std::string url = silent.url();
  bh_http_request r = Fixture::request(url);
  r.total_timeout_ms = 50;
  Call slow;
  f.run(slow, r);
  CHECK(slow.code == BH_E_TIMEOUT);
}

TEST_CASE("the number of requests is limited") {
  Server silent([](const Request &, Peer &peer) { peer.wait_closed(); });
  Fixture f;
  const std::string url = silent.url();
  std::vector<Call> calls(1025);
  for (std::size_t i = 0; i < 1024; ++i) REQUIRE(f.start(calls[i], Fixture::request(url)) == BH_OK);
  CHECK(f.start(calls[1024], Fixture::request(url)) == BH_E_LIMIT);
  CHECK(f.http->cancel(f.plugin->self, calls[0].id) == BH_OK);
  CHECK(f.start(calls[1024], Fixture::request(url)) == BH_OK);
}

TEST_CASE(
    "proxies from the environment are used, except for loopback or if the flag disables them") {
  Server proxy([](const Request &r, Peer &peer) { peer.answer(200, "by proxy: " + r.target); });
  Server direct([](const Request &, Peer &peer) { peer.answer(200, "direct"); });
  const Environment set("http_proxy", proxy.url("")), no("no_proxy", ""), No("NO_PROXY", "");
  Fixture f;
  Call through;
  f.get(through, "http://nowhere.invalid/x");
  CHECK(through.body == "by proxy: http://nowhere.invalid/x");
  Call local;
  f.get(local, direct.url());
  CHECK(local.body == "direct");
  const std::string url = "http://nowhere.invalid/x";
  bh_http_request r = Fixture::request(url);
  r.flags = BH_HTTP_NO_PROXY;
  Call without;
  CHECK(f.run(without, r).code == BH_E_UNAVAILABLE);
}

TEST_CASE("an untrusted certificate is rejected, and a certificate in the CA file is accepted") {
  http_client::testing::TlsServer server;
  Fixture f;
  Call refused;
  f.get(refused, server.url());
  CHECK(refused.code == BH_E_UNAVAILABLE);
  CHECK(refused.text.find("certificate") != std::string::npos);
  CHECK(server.answered() == 0);
  const std::string file = server.write_certificate();
  {
    const Environment set("CURL_CA_BUNDLE", file);
    Call trusted;
    f.get(trusted, server.url());
    CHECK(trusted.text == "");
    CHECK(trusted.status == 200);
    CHECK(trusted.body == "ok");
  }
  ::unlink(file.c_str());
}
