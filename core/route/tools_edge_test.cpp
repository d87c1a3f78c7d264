// Tests messages from tools plugins: calls are completed only by their own plugin, and only with
// valid results.
#include "route/tools_edge.hpp"

#include <catch2/catch.hpp>
#include <limits>

#include "route/call_world.hpp"
#include "route/record_fakes.hpp"

using namespace bulkhead;

namespace {

struct ToolsWorld : World {
  FakeArchive archive;
  std::vector<std::string> log_lines;
  ToolsEdge tools{{*loop, exchange_table, call_answers, ends, answers, gate, notifications,
                   subscriptions, recorder, counters,
                   [this](std::int32_t, std::string_view text) { log_lines.emplace_back(text); }}};

  ToolsWorld() {
    upstream.tools = &tools_table;
    recorder.add_sink(&archive_table, &archive);
  }
  // Starts a call and sends it to the plugin. Returns the number by which the plugin knows the
  // call.
  bh_call called() {
    begin(1);
    return table.get(id)->exchange->id;
  }
};

}  // namespace

TEST_CASE("a call is completed only once, with exactly one object") {
  ToolsWorld w;
  const bh_call call = w.called();
  std::string json = R"({"content":[]})";
  std::uint32_t kind = BH_RESULT_OK;
  std::string expected = R"({"jsonrpc":"2.0","id":"c","result":{"content":[]}})";
  SECTION("a result") {}
  SECTION("an error") {
    kind = BH_RESULT_ERROR;
    json = R"({"code":-5,"message":"no"})";
    expected = R"({"jsonrpc":"2.0","id":"c","error":{"code":-5,"message":"no"}})";
  }
  SECTION("followed by white space") {
    json += "\n ";
    expected.insert(expected.size() - 1, "\n ");
  }
  CHECK(w.tools.complete(call, kind, json) == BH_OK);
  CHECK(w.answers_sent() == std::vector<std::string>{expected});
  CHECK(w.tools.complete(call, kind, json) == BH_STALE);
  w.tools.refused(call, {BH_E_IO, "too late"});
  CHECK(w.answers_sent().size() == 1);
  CHECK(w.log_lines.empty());
}

TEST_CASE("a result that is not exactly one object fails the call") {
  ToolsWorld w;
  const bh_call call = w.called();
  const std::string json =
      GENERATE(as<std::string>{}, "", "{", "7", "[]", "null", R"({},"id":"other")",
               R"({}},{"x":{})", R"({} {})", "{\"\xff\":1}");
  INFO(json);
  CHECK(w.tools.complete(call, BH_RESULT_OK, json) == BH_OK);
  REQUIRE(w.answers_sent().size() == 1);
  CHECK(mcp::member(w.answers_sent()[0], "id") == "\"c\"");
  CHECK(w.answers_sent()[0].find("returned an invalid response") != std::string::npos);
  CHECK(w.log_lines.size() == 1);
}

TEST_CASE("only a tools plugin can complete calls, and only with a known kind") {
  ToolsWorld w;
  const bh_call call = w.called();
  CHECK(w.tools.complete(call + 1'000, BH_RESULT_OK, "{}") == BH_STALE);
  w.upstream.tools = nullptr;  // as if the server were behind a connector
  CHECK(w.tools.complete(call, BH_RESULT_OK, "{}") == BH_STALE);
  w.tools.event(call, BH_RECORD_FS, "{}");
  w.recorder.flush();
  CHECK(w.archive.records.empty());
  CHECK(w.answers_sent().empty());
  w.upstream.tools = &tools_table;
  CHECK(w.tools.complete(call, 77, "{}") == BH_OK);
  REQUIRE(w.answers_sent().size() == 1);
  CHECK_FALSE(mcp::member(w.answers_sent()[0], "error").empty());
}

TEST_CASE("a refused call fails with the error for the plugin's reason") {
  for (const auto &[status, error_code] :
       std::vector<std::pair<bh_status, std::string>>{{BH_E_NOT_FOUND, "-32601"},
                                                      {BH_E_UNSUPPORTED, "-32601"},
                                                      {BH_E_INVALID, "-32602"},
                                                      {BH_E_IO, "-32603"}}) {
    ToolsWorld w;
    w.tools.refused(w.called(), {status, "the reason"});
    REQUIRE(w.answers_sent().size() == 1);
    CHECK(mcp::member(mcp::member(w.answers_sent()[0], "error"), "code") == error_code);
    CHECK(w.answers_sent()[0].find("the reason") != std::string::npos);
  }
}

TEST_CASE("a call that returns BH_OK without a result fails in a later turn") {
  ToolsWorld w;
  const bh_call call = w.called();
  w.tools.expect_completed(call);
  w.tools.expect_completed(call + 1'000);
  CHECK(w.answers_sent().empty());
  const bool completed = GENERATE(true, false);
  if (completed) w.tools.complete(call, BH_RESULT_OK, "{}");
  for (int i = 0; i < 3; ++i) w.loop->poll(0);
  REQUIRE(w.answers_sent().size() == 1);
  CHECK((w.answers_sent()[0].find("did not call complete()") == std::string::npos) == completed);
  CHECK(w.log_lines.empty() == completed);
}

TEST_CASE("progress is sent only to a client that requested it, and only with finite numbers") {
  ToolsWorld w;
  const bh_call call = w.called();
  const auto sent = [&] {
    std::vector<std::string> out;
    for (const FakeClient::Sent &m : w.client.sent) out.push_back(m.text);
    return out;
  };
  w.tools.progress(call, 1, 2, {});
  CHECK(sent().empty());  // the client has not sent a progress token
  w.table.get(w.id)->request.progress_token = "\"p\"";
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  constexpr double infinite = std::numeric_limits<double>::infinity();
  w.tools.progress(call, nan, 2, {});
  w.tools.progress(call, infinite, 2, {});
  w.tools.progress(call + 1'000, 1, 2, {});
  CHECK(sent().empty());
  const std::string head = R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
                           R"({"progressToken":"p","progress":)";
  w.tools.progress(call, 0.5, nan, "a \"quote\"");
  w.tools.progress(call, 1, 2, {});
  w.tools.progress(call, 2, -1, {});
  CHECK(sent() == std::vector<std::string>{head + R"(0.5,"message":"a \"quote\""}})",
                                           head + R"(1,"total":2}})", head + "2}}"});
  w.policy.needs = BH_POLICY_DECIDES | BH_POLICY_JUDGES_NOTIFICATIONS;
  w.policy.verdict = BH_VERDICT_BLOCK;
  w.gate.use(&policy_table, &w.policy);
  w.tools.progress(call, 3, 4, {});
  CHECK(sent().size() == 3);
}

TEST_CASE(
    "an event for the record must be a small object of a known kind, up to a limit per call") {
  ToolsWorld w;
  const bh_call call = w.called();
  const std::string large = R"({"x":")" + std::string(BH_EVENT_BYTES, 'x') + R"("})";
  for (const std::string &detail :
       {std::string("7"), std::string("{"), std::string("{}{}"), large}) {
    w.tools.event(call, BH_RECORD_FS, detail);
  }
  for (const std::uint32_t kind : {BH_RECORD_CALL, BH_RECORD_INTENT, BH_RECORD_APPROVAL,
                                   BH_RECORD_IDENTITY, BH_RECORD_POLICY, BH_RECORD_PLUGIN}) {
    w.tools.event(call, kind, "{}");
  }
  CHECK(w.counters.dropped_details == 10);
  CHECK(w.log_lines.size() == 10);
  w.log_lines.clear();
  for (int i = 0; i < BH_EVENTS_PER_CALL + 5; ++i) w.tools.event(call, BH_RECORD_NET, "{}");
  w.recorder.flush();
  CHECK(w.archive.records.size() == BH_EVENTS_PER_CALL);
  CHECK(w.archive.records[0].kind == BH_RECORD_NET);
  CHECK(w.counters.dropped_details == 15);
  CHECK(w.log_lines.empty());
}

TEST_CASE("a plugin asks for input, and gets the call again with the client's answers") {
  ToolsWorld w;
  w.session.caps = cap::roots;
  w.lane.asks_input = true;
  const bh_call first = w.called();
  CHECK(w.tools.complete(first, BH_RESULT_INPUT_REQUIRED,
                         R"({"inputRequests":{"r":{"method":"roots/list"}},"requestState":"s"})") ==
        BH_OK);
  CHECK(w.tools.complete(first, BH_RESULT_OK, "{}") == BH_STALE);
  CHECK(w.answers_sent().empty());
  CHECK(w.table.get(w.id)->stage == Stage::asking);
  w.client_answers_ask();
  REQUIRE(w.table.get(w.id) != nullptr);
  REQUIRE(w.table.get(w.id)->exchange != nullptr);
  REQUIRE(w.lane.members.size() == 2);
  const std::string members = "{" + w.lane.members[1] + R"("":0})";
  CHECK(mcp::member(members, "requestState") == R"("s")");
  CHECK(mcp::member(members, "inputResponses") == R"({"r":{"roots":[]}})");
  const bh_call second = w.table.get(w.id)->exchange->id;
  CHECK(second != first);
  CHECK(w.tools.complete(second, BH_RESULT_OK, R"({"content":[]})") == BH_OK);
  CHECK(w.answers_sent() ==
        std::vector<std::string>{R"({"jsonrpc":"2.0","id":"c","result":{"content":[]}})"});
  CHECK(w.log_lines.empty());
}

TEST_CASE("a plugin cannot ask for input that the client does not support") {
  ToolsWorld w;
  w.lane.asks_input = true;
  w.tools.complete(w.called(), BH_RESULT_INPUT_REQUIRED,
                   R"({"inputRequests":{"r":{"method":"roots/list"}}})");
  REQUIRE(w.answers_sent().size() == 1);
  CHECK(w.answers_sent()[0].find("roots/list") != std::string::npos);
  CHECK(w.answers_sent()[0].find("isError") != std::string::npos);
}

TEST_CASE("an invalid request for input fails the call") {
  ToolsWorld w;
  w.session.caps = cap::roots;
  w.lane.asks_input = true;
  const char *json = R"({"inputRequests":{"r":{"method":"roots/list"}}})";
  std::string logged;
  SECTION("without the feature") {
    w.lane.asks_input = false;
    logged = "BH_TOOLS_ASKS_INPUT";
  }
  SECTION("no object") {
    json = R"(["inputRequests"])";
    logged = "is not an object";
  }
  SECTION("no members") {
    json = "{ }";
    logged = "is not an object";
  }
  SECTION("not JSON") {
    json = R"({"inputRequests":{},"x":{}},"id":{})";
    logged = "is not an object";
  }
  SECTION("a type") {
    json = R"({"resultType":"complete","requestState":"s"})";
    logged = "resultType";
  }
  w.tools.complete(w.called(), BH_RESULT_INPUT_REQUIRED, json);
  REQUIRE(w.answers_sent().size() == 1);
  CHECK(mcp::member(mcp::member(w.answers_sent()[0], "error"), "code") == "-32603");
  CHECK(w.answers_sent()[0].find("asked for input in an invalid way") != std::string::npos);
  REQUIRE(w.log_lines.size() == 1);
  CHECK(w.log_lines[0].find(logged) != std::string::npos);
}
