// Tests the client edge of MCP 2026-07-28 in the router, for requests without a session and for
// requests on a connection.
#include <catch2/catch.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "route/in_place_world.hpp"

using namespace bulkhead;

namespace {

const std::string version_key = "\"io.modelcontextprotocol/protocolVersion\"";
const std::string revision = version_key + R"(:"2026-07-28")";
const std::string meta =
    R"("_meta":{)" + revision + R"(,"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}})";

std::string request(std::string_view id, std::string_view method, std::string_view params) {
  return std::string(R"({"jsonrpc":"2.0","id":)")
      .append(id)
      .append(R"(,"method":")")
      .append(method)
      .append(R"(","params":{)")
      .append(params)
      .append("}}");
}
std::string call(std::string_view id) {
  return request(id, "tools/call", R"("name":"t__x",)" + meta);
}
const std::string cancel =
    R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)";

std::string_view at(std::string_view text, std::initializer_list<std::string_view> path) {
  for (const std::string_view name : path) text = mcp::member(text, name);
  return text;
}

struct Stateless : Alone {
  Stateless() { start(); }
  void answer(std::size_t call, std::string_view result = R"({"content":[]})") {
    router->parts().servers.tools.complete(tools.ids.at(call), BH_RESULT_OK, result);
  }
  // Lets the router close the sessions of answered requests.
  void turn() { reactor->poll(0); }
  std::size_t sessions() const { return router->parts().clients.sessions.count(); }
  std::uint32_t in_flight() const { return router->parts().calls.ends.in_flight(); }
};

}  // namespace

TEST_CASE(
    "discover and list requests have responses in the form of the revision, without a session") {
  Stateless w;
  const std::string plain =
      R"("_meta":{)" + revision + R"(,"io.modelcontextprotocol/clientCapabilities":{"roots":{}}})";
  REQUIRE(w.ask_alone(1, request("\"d\"", "server/discover", plain)) == BH_OK);
  REQUIRE(w.sent.size() == 1);
  CHECK(w.sent[0].session == 0);
  CHECK(w.sent[0].stream == 1);
  CHECK(at(w.got, {"id"}) == "\"d\"");
  CHECK(at(w.got, {"result", "supportedVersions"}) == R"(["2026-07-28"])");
  CHECK(at(w.got, {"result", "resultType"}) == R"("complete")");
  CHECK(at(w.got, {"result", "capabilities", "tools"}) == R"({"listChanged":true})");
  CHECK(at(w.got, {"result", "ttlMs"}) == "0");
  CHECK(at(w.got, {"result", "cacheScope"}) == R"("private")");
  const std::string_view named =
      at(w.got, {"result", "_meta", "io.modelcontextprotocol/serverInfo", "name"});
  CHECK(named == "\"" + w.profile.server_name + "\"");
  CHECK(at(w.got, {"result", "serverInfo"}).empty());

  REQUIRE(w.ask_alone(2, request("5", "tools/list", meta)) == BH_OK);
  CHECK(at(w.got, {"result", "tools"}).find("t__y") != std::string_view::npos);
  CHECK(at(w.got, {"result", "ttlMs"}) == "0");
  CHECK(at(w.got, {"result", "resultType"}) == R"("complete")");
  CHECK(w.sessions() == 1);  // the session of the session-based client
  w.list();
  CHECK(w.has("t__y"));
  CHECK_FALSE(w.has("resultType"));
}

TEST_CASE(
    "an invalid request gets the error code and HTTP status of the revision, in this order of "
    "checks") {
  Stateless w;
  const std::string caps = R"("io.modelcontextprotocol/clientCapabilities":{})";
  const auto with = [](const std::string &members) { return R"("_meta":{)" + members + "}"; };
  struct Case {
    std::string method, params;
    std::string_view code;
    std::uint32_t status;
  };
  const std::vector<Case> cases = {
      {"server/discover", "", "-32602", 400},
      {"server/discover", with(caps), "-32602", 400},
      {"tools/list", with(version_key + ":7," + caps), "-32602", 400},
      {"tools/list", with(version_key + R"(:"2027-01-01",)" + caps), "-32022", 400},
      {"nonsense", with(version_key + R"(:"2027-01-01")"), "-32022", 400},
      {"nonsense", with(revision), "-32601", 404},
      {"ping", with(revision + "," + caps), "-32601", 404},
      {"initialize", with(revision + "," + caps), "-32601", 404},
      {"logging/setLevel", with(revision + "," + caps), "-32601", 404},
      {"resources/subscribe", with(revision + "," + caps), "-32601", 404},
      {"resources/unsubscribe", with(revision + "," + caps), "-32601", 404},
      {"tools/list", with(revision), "-32602", 400},
      {"tools/list", with(revision + R"(,"io.modelcontextprotocol/clientCapabilities":[])"),
       "-32602", 400},
      {"tools/list", with(revision + "," + caps + R"(,"io.modelcontextprotocol/logLevel":"loud")"),
       "-32602", 0},
      {"tools/call", R"("name":"t__z",)" + with(revision + "," + caps), "-32602", 0},
      {"tools/list", R"("cursor":"none",)" + with(revision + "," + caps), "-32602", 0},
      {"resources/read", R"("uri":"bulkhead://u/none",)" + with(revision + "," + caps), "-32602",
       0},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].method << " " << cases[i].params);
    w.sent.clear();
    REQUIRE(w.ask_alone(i + 1, request("1", cases[i].method, cases[i].params)) == BH_OK);
    REQUIRE(w.sent.size() == 1);
    CHECK(at(w.got, {"error", "code"}) == cases[i].code);
    CHECK(w.sent[0].http_status == cases[i].status);
    CHECK(at(w.got, {"id"}) == "1");
  }
  CHECK(at(w.got, {"error", "data", "uri"}) == R"("bulkhead://u/none")");
  w.ask_alone(90, request("1", cases[3].method, cases[3].params));
  CHECK(at(w.got, {"error", "data", "supported"}) == R"(["2026-07-28"])");
  CHECK(at(w.got, {"error", "data", "requested"}) == R"("2027-01-01")");
  CHECK(w.tools.calls.empty());
}

TEST_CASE("a connection that sends initialize after server/discover has the session's revision") {
  Stateless w;
  const auto protocol = [&w] {
    w.turn();
    const auto clients = w.router->parts().clients.sessions.list();
    REQUIRE(clients.size() == 1);
    return clients[0].protocol;
  };
  w.ask(request("1", "server/discover", meta));
  CHECK(protocol() == "2026-07-28");
  w.ask(request("2", "initialize", R"("protocolVersion":"2025-11-25","capabilities":{})"));
  CHECK(at(w.got, {"result", "protocolVersion"}) == R"("2025-11-25")");
  CHECK(protocol() == "2025-11-25");
  w.ask(request("3", "tools/list", meta));
  CHECK(protocol() == "2025-11-25");
}

TEST_CASE("server/discover is unknown in a session unless the request states its revision") {
  Stateless w;
  w.ask(request("0", "initialize", R"("protocolVersion":"2025-11-25","capabilities":{})"));
  for (const std::string params : {"", R"("_meta":{"progressToken":1})"}) {
    const std::size_t before = w.sent.size();
    w.ask(request("1", "server/discover", params));
    REQUIRE(w.sent.size() == before + 1);
    CHECK(w.sent.back().http_status == 0);
    CHECK(at(w.got, {"error", "code"}) == "-32601");
  }
  w.ask(request("2", "server/discover", meta));
  CHECK(at(w.got, {"result", "supportedVersions"}) == R"(["2026-07-28"])");
  // Without a session, the client learns what is missing.
  REQUIRE(w.ask_alone(1, request("3", "server/discover", "")) == BH_OK);
  CHECK(at(w.got, {"error", "code"}) == "-32602");
  CHECK(w.sent.back().http_status == 400);
}

TEST_CASE("for a request without _meta, the header determines the protocol revision") {
  Stateless w;
  const std::string list = R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})";
  const auto code = [&](std::string_view message, const std::vector<bh_header> *headers) {
    w.sent.clear();
    w.ask_alone(1, message, headers);
    return std::string(at(w.got, {"error", "code"}));
  };
  const std::vector<bh_header> next = {{bh::str("MCP-protocol-VERSION"), bh::str("2026-07-28")}};
  const std::vector<bh_header> old = {{bh::str("MCP-Protocol-Version"), bh::str("2025-11-25")},
                                      {bh::str("Mcp-Method"), bh::str("2026-07-28")}};
  CHECK(code(list, &next) == "-32602");
  CHECK(w.sent[0].http_status == 400);
  CHECK(code(list, &old) == "-32600");  // error: the session is not initialized
  CHECK(code(list, nullptr) == "-32600");
  const std::string initialize =
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}})";
  CHECK(w.ask_alone(2, initialize, &next) == BH_E_SESSION_LOST);
}

TEST_CASE("headers must match the body, and this is checked first") {
  Alone w;
  w.tools.list = R"([{"name":"x","inputSchema":{"type":"object","properties":{)"
                 R"("region":{"type":"string","x-mcp-header":"Region"}}}}])";
  w.start();
  const auto code = [&](const std::string &message, const std::vector<bh_header> &headers) {
    w.sent.clear();
    w.ask_alone(1, message, &headers);
    if (w.sent.empty()) return std::string("at the server");
    CHECK(w.sent[0].http_status == 400);
    return std::string(at(w.got, {"error", "code"}));
  };
  const auto header = [](std::string_view name, std::string_view value) {
    return bh_header{bh::str(name), bh::str(value)};
  };
  const bh_header version = header("MCP-Protocol-Version", "2026-07-28");
  const bh_header method = header("Mcp-Method", "tools/call"), name = header("mcp-name", "t__x");
  const bh_header other = header("MCP-Protocol-Version", "2027-01-01");
  const std::string message =
      request("1", "tools/call", R"("name":"t__x","arguments":{"region":"eu"},)" + meta);
  CHECK(code(message, {}) == "-32020");
  CHECK(code(message, {version, method}) == "-32020");
  CHECK(code(message, {other, method, name}) == "-32020");
  CHECK(code(message, {version, header("Mcp-Method", "tools/list"), name}) == "-32020");
  CHECK(code(message, {version, method, header("Mcp-Name", "t__y")}) == "-32020");
  CHECK(code(message, {version, method, name, name}) == "-32020");
  // The header for the argument is missing.
  CHECK(code(message, {version, method, name}) == "-32020");
  CHECK(code(message, {version, method, name, header("Mcp-Param-Region", "us")}) == "-32020");
  CHECK(w.tools.calls.empty());
  const std::string future = R"({"jsonrpc":"2.0","id":1,"method":"nonsense","params":{"_meta":{)" +
                             version_key + R"(:"2027-01-01"}}})";
  CHECK(code(future, {version, header("Mcp-Method", "nonsense")}) == "-32020");
  CHECK(code(future, {other, header("Mcp-Method", "nonsense")}) == "-32022");
  CHECK(code(message, {version, method, header("Mcp-Name", "=?base64?dF9feA==?="),
                       header("mcp-param-region", " eu ")}) == "at the server");
  CHECK(w.tools.calls.size() == 1);
}

TEST_CASE(
    "the response to a call on a connection is sent on that connection, and no session remains") {
  Stateless w;
  w.ask(call("\"a\""));
  w.ask(call("2"));
  REQUIRE(w.tools.calls == std::vector<std::string>{"tools/call x", "tools/call x"});
  w.answer(1, R"({"content":[],"isError":true})");
  REQUIRE(w.sent.size() == 1);
  CHECK(w.sent[0].session == w.session);
  CHECK(at(w.got, {"id"}) == "2");
  CHECK(at(w.got, {"result", "isError"}) == "true");
  CHECK(at(w.got, {"result", "resultType"}) == R"("complete")");
  w.got.clear();
  w.answer(0);
  CHECK(at(w.got, {"id"}) == "\"a\"");
  CHECK(w.sent[1].session == w.session);
  w.turn();
  CHECK(w.sessions() == 1);
  // The same connection also supports the other revisions.
  w.ask(R"({"jsonrpc":"2.0","id":9,"method":"initialize","params":{)"
        R"("protocolVersion":"2025-11-25","capabilities":{}}})");
  CHECK(at(w.got, {"result", "protocolVersion"}) == R"("2025-11-25")");
  w.list();
  CHECK_FALSE(w.has("resultType"));
  w.ask(request("3", "tools/list", meta));
  CHECK(w.has("resultType"));
}

TEST_CASE("lists requested without a session cause no list_changed notifications") {
  Stateless w;
  w.ask(request("1", "tools/list", meta));
  REQUIRE(w.has("t__x"));
  w.turn();
  w.sent.clear();
  w.tools.list = R"([{"name":"z"}])";
  w.router->parts().servers.tools.list_changed(*w.upstream, BH_LIST_TOOLS);
  for (int i = 0; i < 3; ++i) w.turn();
  CHECK(w.sent.empty());
  w.ask(request("2", "tools/list", meta));
  CHECK(w.has("t__z"));
}

TEST_CASE("cancelling a request on a connection does not affect other requests") {
  Stateless w;
  for (const char *id : {"1", "\"1\"", "2"}) w.ask(call(id));
  REQUIRE(w.in_flight() == 3);
  w.ask(cancel + "\"1\"}}");
  CHECK(w.in_flight() == 2);
  REQUIRE(w.sent.size() == 1);  // an empty message, which releases the stream
  CHECK(w.got.empty());
  w.ask(cancel + "\"1\"}}");  // ignored: already cancelled
  w.ask(cancel + "3}}");      // ignored: unknown id
  w.ask(cancel + "2," + meta + "}}");
  CHECK(w.in_flight() == 1);
  w.answer(0);
  CHECK(at(w.got, {"id"}) == "1");
  w.turn();
  CHECK(w.sessions() == 1);
}

TEST_CASE("a closed stream or connection cancels its requests") {
  Stateless w;
  REQUIRE(w.ask_alone(4, call("1")) == BH_OK);
  REQUIRE(w.ask_alone(5, call("1")) == BH_OK);
  REQUIRE(w.in_flight() == 2);
  w.router->parts().clients.sessions.stream_gone(w.end(), 4);
  CHECK(w.in_flight() == 1);
  w.answer(1);
  CHECK(w.sent.back().stream == 5);

  w.ask(call("7"));
  w.ask(call("8"));
  CHECK(w.in_flight() == 2);
  w.router->parts().clients.sessions.close(w.session, BH_SESSION_GONE);
  CHECK(w.in_flight() == 0);
  CHECK(w.sessions() == 0);
}

TEST_CASE("requests on a connection receive responses after its input is closed") {
  Stateless w;
  w.ask(call("7"));
  w.router->parts().clients.sessions.close(w.session, BH_SESSION_INPUT_ENDED);
  CHECK_FALSE(w.router->idle());
  w.answer(0);
  CHECK(at(w.got, {"id"}) == "7");
  w.turn();
  CHECK(w.router->idle());
}

TEST_CASE("a connection has at most limits.in_flight_per_session pending requests") {
  Alone w;
  w.profile.limits.in_flight_per_session = 2;
  w.start();
  w.ask(call("1"));
  w.ask(call("2"));
  w.ask(call("3"));
  CHECK(at(w.got, {"id"}) == "3");
  CHECK(at(w.got, {"error", "code"}) == "-32603");
  CHECK(w.has("limits.in_flight_per_session = 2"));
  // Once a response has been sent, the next request is admitted in the same iteration of the event
  // loop.
  w.router->parts().servers.tools.complete(w.tools.ids[0], BH_RESULT_OK, "{}");
  w.ask(call("4"));
  CHECK(w.got.empty());
  CHECK(w.tools.calls.size() == 3);
}

TEST_CASE("a request that exceeds the total number of requests is rejected with that limit") {
  Alone w;
  w.profile.limits.sessions = 2;
  w.start();
  for (const char *id : {"1", "2", "3"}) {
    w.got.clear();
    w.ask(call(id));
    if (!w.got.empty()) break;
  }
  CHECK(at(w.got, {"error", "code"}) == "-32603");
  CHECK(w.has("limits.sessions = 2"));
  CHECK_FALSE(w.has("limits.in_flight_per_session"));
  w.router->parts().servers.tools.complete(w.tools.ids[0], BH_RESULT_OK, "{}");
  w.reactor->poll(0);  // closes the session of the answered request
  w.got.clear();
  w.ask(call("4"));
  CHECK(w.got.empty());
}

TEST_CASE("during shutdown, pending requests on connections receive responses with their ids") {
  Stateless w;
  w.ask(call("7"));
  w.router->parts().clients.sessions.end_all("the end");
  REQUIRE(w.sent.size() == 1);
  CHECK(w.sent[0].session == w.session);
  CHECK(at(w.sent[0].text, {"id"}) == "7");
  CHECK(at(w.sent[0].text, {"error", "message"}) == R"("the end")");
}

TEST_CASE("errors from servers are converted to codes of this revision only for its clients") {
  Stateless w;
  const auto fail = [&](const std::string &message, std::string_view error) {
    w.ask(message);
    w.got.clear();
    w.router->parts().servers.tools.complete(w.tools.ids.back(), BH_RESULT_ERROR, error);
    return w.got;
  };
  const std::string error = R"({"data":{"code":1},"code": -32002 ,"message":"no"})";
  CHECK(fail(call("1"), error) ==
        R"({"jsonrpc":"2.0","id":1,"error":{"data":{"code":1},"code": -32602 ,"message":"no"}})");
  const std::string old =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t__x"}})";
  CHECK(fail(old, error) == R"({"jsonrpc":"2.0","id":1,"error":)" + error + "}");
  w.sent.clear();
  const std::string needs =
      R"({"code":-32021,"message":"m","data":{"requiredCapabilities":{"sampling":{}}}})";
  CHECK(fail(call("1"), needs) == R"({"jsonrpc":"2.0","id":1,"error":)" + needs + "}");
  CHECK(w.sent.back().http_status == 400);
}

TEST_CASE("a request of this revision is not part of a batch") {
  Stateless w;
  w.ask(R"({"jsonrpc":"2.0","id":9,"method":"initialize","params":{)"
        R"("protocolVersion":"2025-03-26","capabilities":{}}})");
  w.ask("[" + call("1") + R"(,{"jsonrpc":"2.0","id":2,"method":"ping"}])");
  CHECK(w.has(R"({"jsonrpc":"2.0","id":1,"error":{"code":-32600)"));
  CHECK(w.has(R"({"jsonrpc":"2.0","id":2,"result":{}})"));
  CHECK(w.tools.calls.empty());
}

TEST_CASE("a request with a duplicate requestState or inputResponses is rejected by the scanner") {
  Stateless w;
  const std::string state = R"("requestState":"s",)", responses = R"("inputResponses":{},)";
  for (const std::string &members :
       {state + state, responses + responses, state + R"("r\u0065questState":"t",)",
        responses + R"("input\u0052esponses":{"a":{}},)", state + responses + state}) {
    INFO(members);
    const std::size_t before = w.sent.size();
    const std::string message = request("1", "tools/call", R"("name":"t__x",)" + members + meta);
    REQUIRE(w.ask_alone(before + 1, message) == BH_OK);
    REQUIRE(w.sent.size() == before + 1);
    CHECK(at(w.got, {"error", "code"}) == "-32600");
    CHECK(at(w.got, {"error", "message"}).find("duplicate member") != std::string::npos);
  }
  CHECK(w.tools.calls.empty());
}

TEST_CASE("requests without a session count for their client's limits together") {
  Stateless w;
  w.profile.limits.in_flight_per_session = 3;
  const auto answers = [&w] {
    std::size_t count = 0;
    for (const Alone::Sent &sent : w.sent) count += sent.kind == BH_OUT_ANSWER ? 1 : 0;
    return count;
  };
  for (std::uint64_t stream = 1; stream <= 3; ++stream) {
    REQUIRE(w.ask_alone(stream, call("1")) == BH_OK);
  }
  CHECK(w.tools.calls.size() == 3);
  CHECK(answers() == 0);
  REQUIRE(w.ask_alone(4, call("4")) == BH_OK);
  CHECK(answers() == 1);
  CHECK(at(w.got, {"error", "code"}) == "-32603");
  CHECK(at(w.got, {"error", "message"}).find("limits.in_flight_per_session = 3") !=
        std::string_view::npos);
  CHECK(w.tools.calls.size() == 3);
  // The limits of other clients are not affected: a session, and another peer.
  w.ask(call("5"));
  CHECK(w.tools.calls.size() == 4);
  REQUIRE(w.ask_alone(5, call("6"), nullptr, "192.0.2.7:1") == BH_OK);
  CHECK(w.tools.calls.size() == 5);
  // Both an answer and a cancellation make room.
  w.answer(0);
  w.turn();
  REQUIRE(w.ask_alone(6, call("7")) == BH_OK);
  CHECK(w.tools.calls.size() == 6);
  w.router->parts().clients.sessions.stream_gone(w.end(), 2);
  REQUIRE(w.ask_alone(7, call("8")) == BH_OK);
  REQUIRE(w.ask_alone(8, call("9")) == BH_OK);
  CHECK(w.tools.calls.size() == 7);
  CHECK(at(w.got, {"error", "code"}) == "-32603");
}

TEST_CASE("a call in flight is not affected by a client that cycles through capability sets") {
  Stateless w;
  w.profile.limits.idle_view_ms = 0;
  const auto with = [](const std::string &capabilities, std::string_view method,
                       const std::string &params) {
    return request("1", method,
                   params + R"("_meta":{)" + revision +
                       R"(,"io.modelcontextprotocol/clientCapabilities":)" + capabilities + "}");
  };
  const std::string name = R"("name":"t__x",)";
  // A call in flight keeps its set.
  REQUIRE(w.ask_alone(1, with(R"({"sampling":{}})", "tools/call", name)) == BH_OK);
  REQUIRE(w.tools.calls.size() == 1);
  const std::size_t before = w.sent.size();
  std::uint64_t stream = 1;
  for (int turn = 0; turn < 20; ++turn) {
    for (const char *set : {R"({"elicitation":{}})", R"({"elicitation":{"form":{}}})",
                            R"({"elicitation":{"url":{}}})", R"({"elicitation":{},"sampling":{}})",
                            R"({"elicitation":{"url":{}},"sampling":{}})",
                            R"({"sampling":{"tools":{}}})", R"({"sampling":{"context":{}}})"}) {
      REQUIRE(w.ask_alone(++stream, with(set, "tools/list", "")) == BH_OK);
      w.turn();
      CHECK(at(w.got, {"result", "tools"}).find("t__x") != std::string_view::npos);
    }
  }
  CHECK(w.sent.size() == before + stream - 1);
  w.answer(0);
  CHECK(at(w.sent.back().text, {"result", "content"}) == "[]");
  CHECK(w.unanswered.empty());
}
