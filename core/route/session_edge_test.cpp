// Tests the client edge for revisions with sessions: the handshake, which requests need it, and
// notifications.
#include "route/session_edge.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "route/request_world.hpp"

using namespace bulkhead;

namespace {

struct EdgeWorld : RequestWorld {
  SessionJournal journal{sessions, *loop, profile.limits};
  std::uint32_t lost = 0;
  SessionEdge edge{{profile, counters, answers, requests, views, ends, asks, desk, notifications,
                    subscriptions, journal, *loop, [this](const Lane &, mcp::Method) { ++lost; }}};
  Session &fresh = open_session(sessions, client);  // without a handshake

  ~EdgeWorld() override { views.end_all(); }
  // Sends a request in this session. Returns "CODE STATUS TEXT", "result" or "call"; see
  // RequestWorld.
  std::string ask_in(Session &s, const std::string &method, const std::string &params,
                     std::uint64_t batch = 0) {
    client.sent.clear();
    const std::size_t before = table.size();
    const Scanned message(R"({"jsonrpc":"2.0","id":"c","method":")" + method + R"(","params":)" +
                          params + "}");
    Incoming incoming{{s.handle, 7, batch}, message.get(), loop->now_ns()};
    edge.request(s, incoming);
    return table.size() != before ? "call" : answered();
  }
  std::string initialize(Session &s, const std::string &revision,
                         const std::string &capabilities = "{}") {
    return ask_in(s, "initialize",
                  R"({"protocolVersion":")" + revision + R"(","capabilities":)" + capabilities +
                      R"(,"clientInfo":{"name":"agent","version":"1"}})");
  }
  std::string result(std::string_view member) const {
    return std::string(mcp::member(mcp::member(client.sent.at(0).text, "result"), member));
  }
  void note(Session &s, const std::string &method, const std::string &params = "{}") {
    const Scanned message(R"({"jsonrpc":"2.0","method":"notifications/)" + method +
                          R"(","params":)" + params + "}");
    edge.notification(s, message.get());
  }
};

}  // namespace

TEST_CASE("before the handshake, only ping and initialize are accepted") {
  EdgeWorld w;
  CHECK(w.ask_in(w.fresh, "ping", "{}") == "result");
  for (const std::string method : {"tools/list", "tools/call", "logging/setLevel", "odd"}) {
    INFO(method);
    CHECK(w.ask_in(w.fresh, method, "{}").starts_with("-32600 400 \"the session is not initial"));
  }
  CHECK(w.counters.refused_messages == 4);
  for (const std::string params : {"{}", R"({"protocolVersion":7})", R"({"protocolVersion":""})"}) {
    INFO(params);
    CHECK(w.ask_in(w.fresh, "initialize", params).starts_with("-32602 400"));
  }
  w.note(w.fresh, "initialized");
  CHECK_FALSE(w.fresh.ready);
  CHECK_FALSE(w.fresh.initialized);
  CHECK(w.fresh.view == nullptr);
}

TEST_CASE("initialize starts a session of the revision that the client wants, or of the newest") {
  for (const auto &[wanted, got] :
       std::vector<std::pair<std::string, std::string>>{{"2024-11-05", "2024-11-05"},
                                                        {"2025-03-26", "2025-03-26"},
                                                        {"2025-06-18", "2025-06-18"},
                                                        {"2025-11-25", "2025-11-25"},
                                                        {"2026-07-28", "2025-11-25"},
                                                        {"1999-01-01", "2025-11-25"}}) {
    INFO(wanted);
    EdgeWorld w;
    CHECK(w.initialize(w.fresh, wanted, R"({"roots":{},"sampling":{}})") == "result");
    CHECK(w.result("protocolVersion") == "\"" + got + "\"");
    CHECK(w.fresh.protocol() == got);
    CHECK(w.fresh.caps == (cap::roots | cap::sampling));
    CHECK(text_of(w.fresh.claimed_name) == "agent");
    CHECK(w.fresh.view != nullptr);
    CHECK(w.edge.takes_batches(w.fresh) == (got == "2025-03-26"));
    w.note(w.fresh, "initialized");
    CHECK(w.fresh.ready);
    CHECK(w.initialize(w.fresh, wanted) == "-32600 0 \"the session is already initialized\"");
    CHECK(w.fresh.caps == (cap::roots | cap::sampling));
  }
}

TEST_CASE("a client that cannot be asked has no capabilities") {
  EdgeWorld w;
  w.fresh.answers_only = true;
  CHECK(w.initialize(w.fresh, "2025-11-25", R"({"roots":{},"elicitation":{}})") == "result");
  CHECK(w.fresh.caps == 0);
}

TEST_CASE("initialize is not accepted in a batch") {
  EdgeWorld w;
  const std::uint64_t batch = w.answers.batches().open({w.fresh.handle, 7, 0});
  const Scanned message(R"({"jsonrpc":"2.0","id":"c","method":"initialize",)"
                        R"("params":{"protocolVersion":"2025-03-26"}})");
  Incoming incoming{{w.fresh.handle, 7, batch}, message.get(), 1};
  w.edge.request(w.fresh, incoming);
  REQUIRE(w.client.sent.size() == 1);
  CHECK(w.client.sent[0].text.find("initialize cannot be part of a batch") != std::string::npos);
  CHECK_FALSE(w.fresh.initialized);
}

TEST_CASE(
    "a client with an optional handshake can omit or repeat it; a repetition resets its state") {
  EdgeWorld w;
  w.fresh.handshake_optional = true;
  CHECK(w.ask_in(w.fresh, "tools/list", "{}") == "result");
  CHECK(w.fresh.initialized);
  CHECK(w.fresh.caps == 0);
  const View *view = w.fresh.view;
  REQUIRE(view != nullptr);
  CHECK(w.ask_in(w.fresh, "logging/setLevel", R"({"level":"error"})") == "result");
  CHECK(w.fresh.log_level >= 0);
  CHECK(w.fresh.listed != 0);
  SECTION("the capabilities are the same, so the client keeps its view") {
    CHECK(w.initialize(w.fresh, "2025-11-25") == "result");
    CHECK(w.fresh.view == view);
  }
  SECTION("other capabilities") {
    CHECK(w.initialize(w.fresh, "2025-11-25", R"({"sampling":{}})") == "result");
    CHECK(w.fresh.view->caps == w.fresh.caps);
    CHECK(w.fresh.caps == cap::sampling);
  }
  CHECK(w.fresh.log_level == -1);
  CHECK(w.fresh.listed == 0);
}

TEST_CASE("methods are rejected that the profile or the session's revision does not have") {
  EdgeWorld w;
  REQUIRE(w.initialize(w.fresh, "2025-06-18") == "result");
  for (const std::string method : {"tasks/get", "tasks/result", "tasks/cancel", "tasks/update"}) {
    INFO(method);
    CHECK(w.ask_in(w.fresh, method, R"({"taskId":"1"})") ==
          "-32601 0 \"Method not found: " + method + "\"");
  }
  Session &newest = open_session(w.sessions, w.client);
  REQUIRE(w.initialize(newest, "2025-11-25") == "result");
  CHECK(w.ask_in(newest, "tasks/get", R"({"taskId":"1"})").starts_with("-32602"));
  CHECK(w.ask_in(newest, "tasks/update", R"({"taskId":"1"})").starts_with("-32601"));
  CHECK(w.ask_in(newest, "server/discover", "{}").starts_with("-32601"));
  for (const std::string params : {"{}", R"({"level":"loud"})", R"({"level":3})"}) {
    INFO(params);
    CHECK(w.ask_in(newest, "logging/setLevel", params).starts_with("-32602 0"));
  }
  CHECK(newest.log_level == -1);
  CHECK(w.ask_in(newest, "logging/setLevel", R"({"level":"\u0064ebug"})") == "result");
  CHECK(newest.log_level == 0);
  w.profile.expose.logging = false;
  CHECK(w.ask_in(newest, "logging/setLevel", R"({"level":"error"})").starts_with("-32601"));
  CHECK(newest.log_level == 0);
}

TEST_CASE("a cancellation ends only the call that it names, and releases its slot") {
  EdgeWorld w;
  w.session.initialized = true;
  REQUIRE(w.ask_in(w.session, "tools/call", R"({"name":"s__t","arguments":{"region":"us"}})") ==
          "call");
  w.note(w.session, "cancelled", R"({"requestId":"other"})");
  w.note(w.session, "cancelled", "{}");
  w.note(w.fresh, "cancelled", R"({"requestId":"c"})");  // in another session
  w.note(w.session, "odd", R"({"requestId":"c"})");
  CHECK(w.table.size() == 1);
  CHECK(w.lane.retracts == 0);
  CHECK(w.client.sent.empty());
  w.note(w.session, "cancelled", R"({"requestId":"c","reason":"stop"})");
  CHECK(w.table.size() == 0);
  CHECK(w.lane.retracts == 1);
  CHECK(w.lane.retraction == BH_CANCEL_CLIENT);
  REQUIRE(w.client.sent.size() == 1);
  CHECK(w.client.sent[0].text.empty());
  CHECK(w.client.sent[0].http_status == 202);
}
