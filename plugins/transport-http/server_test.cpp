// Tests requests and responses: status codes, sessions and the guard.
#include "guard.hpp"
#include "testing.hpp"

using transport_http::WrongTokens;
using namespace transport_http::testing;

namespace {

std::string raw(const Rig &rig, std::string_view first_line, std::string_view fields = {}) {
  return std::string(first_line) + "\r\n" + host_line(rig) + std::string(fields) + "\r\n";
}

std::string with_host(std::string_view host) {
  return "GET /mcp HTTP/1.1\r\nHost: " + std::string(host) + "\r\n\r\n";
}

}  // namespace

TEST_CASE("a session is initialized, used and deleted; after that, its id is unknown") {
  Rig rig;
  REQUIRE(rig.status == BH_OK);
  CHECK(rig.endpoint == "http://127.0.0.1:" + std::to_string(rig.port) + "/mcp");
  Client client(rig);
  const std::string id = initialize(rig, client);
  CHECK(rig.open.begin()->second == "local");

  const Response call = client.request(post(rig, "echo 1", id));
  CHECK(call.status == 200);
  CHECK(call.field("Content-Type") == "application/json");
  CHECK(call.field("Mcp-Session-Id").empty());
  CHECK_FALSE(call.field("Date").empty());
  CHECK(call.body == "echo 1");

  const Response noted = client.request(post(rig, "notify", id));
  CHECK(noted.status == 202);
  CHECK(noted.body.empty());

  const Response deleted = client.request(get(rig, id, {}, "/mcp", "DELETE"));
  CHECK(deleted.status == 204);
  REQUIRE(rig.closed.size() == 1);
  CHECK(rig.closed[0].how == BH_SESSION_GONE);
  const Response after = client.request(post(rig, "echo 2", id));
  CHECK(after.status == 404);
  CHECK(after.has(R"("jsonrpc":"2.0","error":{"code":-32001)"));
  CHECK_FALSE(after.has("\"id\""));
  CHECK(client.request(get(rig, id)).status == 404);
  CHECK(client.request(get(rig, id, {}, "/mcp", "DELETE")).status == 404);
}

TEST_CASE("a late response reaches its request") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  Client other(rig);
  client.send(post(rig, "later a", id));
  other.send(post(rig, "later b", id));
  REQUIRE(rig.host.run_until([&] { return rig.delivered.size() == 3; }, 20'000));
  const auto a = rig.delivered[1], b = rig.delivered[2];
  const bool a_first = a.text == "later a";
  CHECK(rig.answer(a, a_first ? "A" : "B") == BH_OK);
  CHECK(rig.answer(b, a_first ? "B" : "A") == BH_OK);
  CHECK(client.response().body == "A");
  CHECK(other.response().body == "B");
  CHECK(rig.answer(a, "again") == BH_STALE);
  CHECK(rig.send(BH_OUT_EVENT, 999, 1, "x") == BH_STALE);
}

TEST_CASE("a session that the host opens for a single request ends with its response") {
  Rig rig;
  rig.refusal = BH_E_UNSUPPORTED;
  Client client(rig);
  SECTION("answered immediately") {
    const Response r = client.request(post(rig, "now"));
    CHECK(r.status == 200);
    CHECK(r.field("Mcp-Session-Id").empty());
  }
  SECTION("answered late") {
    client.send(post(rig, "later"));
    REQUIRE(rig.host.run_until([&] { return !rig.delivered.empty(); }, 20'000));
    CHECK(rig.closed.empty());
    CHECK(rig.answer(rig.delivered[0], "late") == BH_OK);
    CHECK(client.response().body == "late");
  }
  SECTION("a notification") {
    CHECK(client.request(post(rig, "notify")).status == 202);
  }
  SECTION("answered after an event") {
    const Response r = client.request(post(rig, "progress now"));
    CHECK(r.chunked);
    CHECK(r.body == "data: {\"method\":\"progress\"}\n\ndata: {\"result\":\"ok\"}\n\n");
  }
  SECTION("the client disconnects") {
    client.send(post(rig, "later"));
    REQUIRE(rig.host.run_until([&] { return !rig.delivered.empty(); }, 20'000));
    client.close();
    REQUIRE(rig.host.run_until([&] { return !rig.closed.empty(); }, 20'000));
    CHECK(rig.gone.size() == 1);
    CHECK(rig.answer(rig.delivered[0], "late") == BH_STALE);
  }
  REQUIRE(rig.host.run_until([&] { return rig.closed.size() == 1; }, 20'000));
  CHECK(rig.open.empty());
}

TEST_CASE("if the client of an initialize request disconnects, no session remains") {
  Rig rig;
  Client client(rig);
  initialize(rig, client);
  CHECK(rig.open.size() == 1);
  Client second(rig);
  rig.refusal = BH_E_SESSION_LOST;
  // The response has not been sent, so the client cannot know the session ID.
  second.send(post(rig, "later"));
  REQUIRE(rig.host.run_until([&] { return rig.delivered.size() == 2; }, 20'000));
  second.close();
  REQUIRE(rig.host.run_until([&] { return rig.closed.size() == 1; }, 20'000));
  CHECK(rig.open.size() == 1);
}

TEST_CASE("rejected requests have the specified statuses") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  const auto status = [&](std::string_view text) { return client.request(text).status; };
  const std::string json = "Content-Type: application/json\r\n";

  CHECK(status(raw(rig, "POST /mcp HTTP/1.1", json + "Accept: application/json\r\n")) == 406);
  CHECK(status(raw(rig, "POST /mcp HTTP/1.1", json + "Accept: text/html\r\n")) == 406);
  CHECK(status(raw(rig, "POST /mcp HTTP/1.1", "Content-Type: text/plain\r\n")) == 415);
  CHECK(status(raw(rig, "POST /mcp HTTP/1.1", "Accept: */*\r\n")) == 415);
  CHECK(status(post(rig, "now", "0123456789abcdef0123456789abcdef")) == 404);
  CHECK(status(post(rig, "now", "nonsense")) == 404);
  CHECK(status(post(rig, "now", id, "MCP-Protocol-Version: 1999-01-01\r\n")) == 400);
  CHECK(status(post(rig, "now", id, "MCP-Protocol-Version: 2025-06-18\r\n")) == 200);
  // Without a session, the revision is given in the message, and the header is not checked.
  CHECK(status(post(rig, "now", {}, "MCP-Protocol-Version: 1999-01-01\r\n")) == 200);
  CHECK(status(post(rig, "status-400", id)) == 400);
  CHECK(status(post(rig, "status-404", id)) == 404);
  CHECK(status(post(rig, "status-477", id)) == 400);
  CHECK(status(raw(rig, "GET /mcp HTTP/1.1", "Accept: application/json\r\n")) == 406);
  CHECK(status(raw(rig, "GET /mcp HTTP/1.1")) == 406);
  CHECK(status(get(rig, {})) == 400);
  CHECK(status(get(rig, "0123456789abcdef0123456789abcdef")) == 404);
  CHECK(status(get(rig, id, "Last-Event-ID: nonsense\r\n")) == 400);
  CHECK(status(get(rig, id, "Last-Event-ID: 77-1\r\n")) == 400);
  CHECK(status(raw(rig, "DELETE /mcp HTTP/1.1")) == 400);
  CHECK(status(raw(rig, "GET /.well-known/oauth-protected-resource HTTP/1.1")) == 404);
  CHECK(status(raw(rig, "GET / HTTP/1.1")) == 404);
  CHECK(status(raw(rig, "POST /mcp/x HTTP/1.1", json)) == 404);
  const Response put = client.request(raw(rig, "PUT /mcp HTTP/1.1"));
  CHECK(put.status == 405);
  CHECK(put.field("Allow") == "GET, POST, DELETE, OPTIONS");
  const Response options = client.request(raw(rig, "OPTIONS /mcp HTTP/1.1"));
  CHECK(options.status == 204);
  CHECK(options.field("Allow") == "GET, POST, DELETE, OPTIONS");
  // All requests used one connection, and the session still exists.
  CHECK(client.request(post(rig, "echo x", id)).body == "echo x");
}

TEST_CASE("a response to HEAD has no body") {
  Rig rig;
  Client client(rig);
  client.send(raw(rig, "HEAD /mcp HTTP/1.1") + post(rig, "now"));
  REQUIRE(client.wait_for("HTTP/1.1 200 OK"));
  const std::string &bytes = client.bytes();
  CHECK(bytes.starts_with("HTTP/1.1 405"));
  CHECK(bytes.find("\r\n\r\nHTTP/1.1 200 OK") != bytes.npos);
}

TEST_CASE("invalid framing gets an error response, and the connection is closed") {
  Rig rig;
  const auto refused = [&](std::string_view text, int status) {
    Client client(rig);
    const Response r = client.request(text);
    CHECK(r.status == status);
    CHECK(r.has(status == 413 ? "-32600" : "-32000"));
    CHECK(r.field("Connection") == "close");
    CHECK(client.wait_closed());
  };
  refused("POST /mcp HTTP/1.1\nHost: a\n\n", 400);
  refused(raw(rig, "POST /mcp HTTP/1.1", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n"),
          400);
  refused(raw(rig, "POST /mcp HTTP/1.1", "X: " + std::string(10'000, 'x') + "\r\n"), 431);
  refused(raw(rig, "POST /mcp HTTP/1.1", "Content-Length: 999999999\r\n"), 413);
  refused(raw(rig, "POST /mcp HTTP/1.1", "Expect: tea\r\n"), 417);
  refused("PRI * HTTP/2.0\r\n\r\n", 505);
  // If a request is rejected because of its head, the response does not wait for the body.
  refused("POST /mcp HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 1000\r\n\r\nabc", 403);
  CHECK(rig.delivered.empty());
}

TEST_CASE("the Host header is validated") {
  Rig rig(R"({"listen":"127.0.0.1:0","allowed_hosts":["Gateway.test","other.test:99"]})");
  const std::string port = ":" + std::to_string(rig.port);
  Client client(rig);
  const auto status = [&](std::string_view host) { return client.request(with_host(host)).status; };
  // Status 406 means that the guard has accepted the request. The GET itself is then rejected.
  for (const std::string &good :
       {"localhost" + port, "LOCALHOST" + port, "127.0.0.1" + port, "[::1]" + port,
        std::string("gateway.test"), std::string("gateway.test:1"), std::string("other.test:99")}) {
    CAPTURE(good);
    CHECK(status(good) == 406);
  }
  for (const std::string &bad :
       {"evil.example" + port, std::string("evil.example"), std::string("localhost:1"),
        std::string("localhost"), "localhost.evil.example" + port, "127.0.0.2" + port,
        std::string("other.test:98"), std::string(""), "[::1" + port, "localhost" + port + "@x",
        "evil.example,localhost" + port}) {
    CAPTURE(bad);
    CHECK(status(bad) == 403);
  }
  CHECK(
      client.request("GET http://evil.example/mcp HTTP/1.1\r\n" + host_line(rig) + "\r\n").status ==
      403);
}

TEST_CASE("the Origin header is validated, and allowed origins may read responses") {
  Rig rig(R"({"listen":"127.0.0.1:0","allowed_origins":["https://app.test"]})");
  Client client(rig);
  const auto ask = [&](std::string_view origin) {
    return client.request(post(rig, "now", {}, "Origin: " + std::string(origin) + "\r\n"));
  };
  for (const char *good : {"http://localhost:3000", "https://127.0.0.1", "http://[::1]:5",
                           "https://app.test", "http://localhost"}) {
    CAPTURE(good);
    const Response r = ask(good);
    CHECK(r.status == 200);
    CHECK(r.field("Access-Control-Allow-Origin") == good);
    CHECK(r.field("Access-Control-Expose-Headers") == "Mcp-Session-Id");
  }
  for (const char *bad : {"null", "http://evil.example", "http://localhost.evil.example",
                          "https://app.test.evil.example", "ftp://localhost", "localhost",
                          "http://localhost:3000/path", "http://localhost:x", "http://"}) {
    CAPTURE(bad);
    const Response r = ask(bad);
    CHECK(r.status == 403);
    CHECK(r.field("Access-Control-Allow-Origin").empty());
  }
  const Response preflight =
      client.request(raw(rig, "OPTIONS /mcp HTTP/1.1",
                         "Origin: https://app.test\r\nAccess-Control-Request-Method: POST\r\n"));
  CHECK(preflight.status == 204);
  CHECK(preflight.field("Access-Control-Allow-Origin") == "https://app.test");
  CHECK(preflight.field("Access-Control-Allow-Headers").find("Mcp-Session-Id") !=
        std::string::npos);
  CHECK(
      client.request(raw(rig, "OPTIONS /mcp HTTP/1.1", "Origin: http://evil.example\r\n")).status ==
      403);
}

TEST_CASE("a configured token is required") {
  Rig rig(R"({"listen":"127.0.0.1:0","token":"s3cret-token"})");
  Client client(rig);
  const auto ask = [&](std::string_view fields) {
    return client.request(post(rig, "now", {}, fields));
  };
  const Response none = ask("");
  CHECK(none.status == 401);
  CHECK(none.field("WWW-Authenticate") == "Bearer");
  for (const char *bad :
       {"Authorization: Bearer s3cret-tokeN\r\n", "Authorization: Bearer s3cret\r\n",
        "Authorization: Bearer s3cret-tokens3cret-token\r\n"}) {
    const Response wrong = ask(bad);
    CHECK(wrong.status == 401);
    CHECK(wrong.body.find("the bearer token is wrong") != std::string::npos);
  }
  for (const char *missing : {"", "Authorization: Bearer \r\n", "Authorization: Bearer\r\n",
                              "Authorization: Basic s3cret-token\r\n"}) {
    const Response response = ask(missing);
    CHECK(response.status == 401);
    CHECK(response.body.find("a bearer token is required") != std::string::npos);
  }
  // Only the first wrong token within a minute is logged.
  std::vector<std::string> lines;
  for (const auto &line : rig.host.logs()) {
    if (line.text.find("bearer token is wrong") != std::string::npos) lines.push_back(line.text);
  }
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].starts_with("rejected a request from 127.0.0.1:"));
  CHECK(rig.delivered.empty());
  CHECK(ask("Authorization: bearer s3cret-token\r\n").status == 200);
  // If a client without a token looks for discovery metadata, the response states that there is
  // none, not that authentication is required.
  CHECK(client.request(raw(rig, "GET /.well-known/x HTTP/1.1")).status == 404);
  const std::string id =
      client.request(post(rig, "initialize", {}, "Authorization: Bearer s3cret-token\r\n"))
          .field("Mcp-Session-Id");
  CHECK(id.size() == 32);
  CHECK(rig.open.begin()->second == "token");
  CHECK(ask("Mcp-Session-Id: " + id + "\r\n").status == 401);
  for (const auto &line : rig.host.logs()) CHECK(line.text.find("s3cret") == std::string::npos);
}

TEST_CASE("wrong tokens are reported once a minute, with their number") {
  constexpr std::uint64_t second = 1'000'000'000;
  WrongTokens wrong;
  CHECK(wrong.add(5 * second) == 1);
  for (const std::uint64_t at : {5, 30, 64}) CHECK(wrong.add(at * second) == 0);
  CHECK(wrong.add(65 * second) == 4);
  CHECK(wrong.add(66 * second) == 0);
  CHECK(wrong.add(200 * second) == 2);
}

TEST_CASE("a token is created once, stored by the host, and never logged") {
  Rig rig(R"({"listen":"127.0.0.1:0","token":"auto"})");
  const std::string token = rig.host.secrets["http-token"];
  CHECK(token.size() == 64);
  CHECK(rig.host.logged("http-token"));
  CHECK_FALSE(rig.host.logged(token));
  Client client(rig);
  CHECK(client.request(post(rig, "now")).status == 401);
  CHECK(client.request(post(rig, "now", {}, "Authorization: Bearer " + token + "\r\n")).status ==
        200);
}

TEST_CASE("a token is mandatory on non-loopback addresses") {
  // For a short time, this test opens a port on all addresses of the machine, but clients need the
  // token.
  Rig rig(R"({"listen":"0.0.0.0:0"})");
  REQUIRE(rig.status == BH_OK);
  const std::string token = rig.host.secrets["http-token"];
  CHECK(token.size() == 64);
  Client client(rig);
  CHECK(client.request(post(rig, "now")).status == 401);
}

TEST_CASE("one error contains all configuration errors") {
  Rig rig(R"({"listen":"example.com:1","path":"mcp","colour":1,"token":"a b"})");
  CHECK(rig.status == BH_E_INVALID);
  for (const char *part : {"example.com:1", "path must", "'colour' is unknown", "token must"}) {
    CHECK(rig.fault.find(part) != std::string::npos);
  }
  CHECK(rig.fault.find("a b") == std::string::npos);
}

TEST_CASE("if the address is in use, the error names it") {
  Rig first;
  const std::string address = "127.0.0.1:" + std::to_string(first.port);
  Rig second(R"({"listen":")" + address + R"("})");
  CHECK(second.status == BH_E_IO);
  CHECK(second.fault.find(address) != std::string::npos);
}

TEST_CASE("chunked, pipelined and 100-continue requests are accepted") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  SECTION("chunked") {
    client.send(raw(rig, "POST /mcp HTTP/1.1",
                    "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
                    "Mcp-Session-Id: " +
                        id + "\r\n") +
                "5\r\necho \r\n3\r\nabc\r\n0\r\n\r\n");
    CHECK(client.response().body == "echo abc");
  }
  SECTION("pipelined requests are answered in order, even if the first response comes last") {
    client.send(post(rig, "later", id) + post(rig, "echo 2", id) + post(rig, "echo 3", id));
    REQUIRE(rig.host.run_until([&] { return rig.delivered.size() == 2; }, 20'000));
    rig.host.run_for(20);
    CHECK(rig.delivered.size() == 2);
    CHECK(client.bytes().empty());
    rig.answer(rig.delivered[1], "1");
    CHECK(client.response().body == "1");
    CHECK(client.response().body == "echo 2");
    CHECK(client.response().body == "echo 3");
  }
  SECTION("pipelined bytes above the limit") {
    client.send(post(rig, "later", id));
    std::string many;
    for (int i = 0; i < 1000; ++i) many += post(rig, "echo " + std::to_string(i), id);
    client.send(many);
    REQUIRE(rig.host.run_until([&] { return rig.delivered.size() == 2; }, 20'000));
    rig.answer(rig.delivered[1], "1");
    CHECK(client.response().body == "1");
    for (int i = 0; i < 1000; ++i) REQUIRE(client.response().body == "echo " + std::to_string(i));
  }
  SECTION("100-continue") {
    client.send(
        raw(rig, "POST /mcp HTTP/1.1",
            "Content-Type: application/json\r\nContent-Length: 6\r\nExpect: 100-continue\r\n"
            "Mcp-Session-Id: " +
                id + "\r\n"));
    REQUIRE(client.wait_for("HTTP/1.1 100 Continue\r\n\r\n"));
    client.bytes().clear();
    CHECK(client.request("echo 9").body == "echo 9");
  }
  SECTION("HTTP/1.0") {
    std::string text = post(rig, "echo 1", id);
    text.replace(text.find("HTTP/1.1"), 8, "HTTP/1.0");
    const Response r = client.request(text);
    CHECK(r.body == "echo 1");
    CHECK(r.field("Connection") == "close");
    CHECK(client.wait_closed());
  }
}

TEST_CASE("bodies of 8 MB are transferred in both directions") {
  Rig rig;
  Client client(rig);
  const std::string id = initialize(rig, client);
  std::string body = "echo ";
  while (body.size() < 8u << 20) body += std::to_string(body.size()) + ",";
  const Response r = client.request(post(rig, body, id));
  CHECK(r.status == 200);
  CHECK(r.body == body);
  CHECK(client.request(post(rig, "echo small", id)).body == "echo small");
}

TEST_CASE(
    "at the host's session limit, the session whose eviction does the least harm is evicted") {
  bh_limits limits = test_limits();
  limits.sessions = 2;
  Rig rig(R"({"listen":"127.0.0.1:0"})", limits);
  Client client(rig), calling(rig);
  const std::string first = initialize(rig, client);
  const bh_session handle = rig.last_session;
  const std::string second = initialize(rig, client);
  const std::string third = initialize(rig, client);
  REQUIRE(rig.closed.size() == 1);
  CHECK(rig.closed[0].session == handle);
  CHECK(rig.closed[0].how == BH_SESSION_EVICTED);
  CHECK(rig.host.metric("http.sessions_evicted") == 1);
  CHECK(client.request(post(rig, "now", first)).status == 404);  // this host does not restore it
  CHECK(client.request(post(rig, "now", second)).status == 200);
  CHECK(client.request(get(rig, third, {}, "/mcp", "DELETE")).status == 204);
  CHECK(rig.closed[1].how == BH_SESSION_GONE);
  initialize(rig, client);
  CHECK(rig.closed.size() == 2);
}

TEST_CASE("calls of an evicted session get status 503, because it can be restored") {
  bh_limits limits = test_limits();
  limits.sessions = 1;
  Rig rig(R"({"listen":"127.0.0.1:0"})", limits);
  Client calling(rig), second(rig), late(rig);
  const std::string id = initialize(rig, calling);
  calling.send(post(rig, "later a", id));
  second.send(post(rig, "later b", id));
  rig.host.run_for(20);
  const std::string other = initialize(rig, late);
  for (Client *client : {&calling, &second}) {
    const Response r = client->response();
    CHECK(r.status == 503);
    CHECK(r.field("Retry-After") == "5");
    CHECK(r.body.find(R"("code":-32000)") != r.body.npos);
  }
  // A session is not restored if its client has ended it.
  calling.send(post(rig, "later c", other));
  rig.host.run_for(20);
  CHECK(late.request(get(rig, other, {}, "/mcp", "DELETE")).status == 204);
  CHECK(calling.response().status == 404);
}

TEST_CASE("if the host rejects a session, the response is 503 with Retry-After") {
  bh_limits limits = test_limits();
  limits.sessions = 1;
  Rig rig(R"({"listen":"127.0.0.1:0"})", limits);
  Client client(rig);
  rig.limits.sessions = 0;  // other transports use all sessions
  const Response r = client.request(post(rig, "initialize"));
  CHECK(r.status == 503);
  CHECK_FALSE(r.field("Retry-After").empty());
  CHECK(rig.closed.empty());
}

TEST_CASE("requests over a Unix socket are answered") {
  std::string folder = (std::filesystem::temp_directory_path() / "bulkhead-XXXXXX").string();
  REQUIRE(::mkdtemp(folder.data()) != nullptr);
  const std::string path = folder + "/socket";
  {
    Rig rig(R"({"listen":"unix:)" + path + R"("})");
    REQUIRE(rig.status == BH_OK);
    CHECK(rig.endpoint == "unix:" + path);
    CHECK(::access(path.c_str(), F_OK) == 0);
  }
  std::filesystem::remove_all(folder);  // the host removes the socket file
}
