// Tests calls whose server asks the client for input.
#include "route/input_rounds.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "route/call_world.hpp"

using namespace bulkhead;

namespace {

struct Rounds : World {
  FakeLane capable{*this, upstream, cap::roots | cap::sampling | cap::elicitation, 0};

  explicit Rounds(std::uint32_t needs = BH_POLICY_DECIDES) {
    policy.needs = needs;
    session.caps = capable.caps();
    capable.stateless = true;
  }
  // Like World::begin(), but on the lane whose server may ask for input.
  void start() {
    gate.use(&policy_table, &policy);
    const std::string text =
        R"({"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"s__t","arguments":{"x":1}}})";
    mcp::Scan scan;
    mcp::ScanError error;
    REQUIRE(mcp::scan(text, &scan, &error));
    Incoming request{{session.handle, 7, 0}, {text, &scan}, 1};
    CallInHand hand{request.message, {&capable, {}, scan.name}, {}, {}};
    hand.target.resolved.original_token = "\"t\"";
    calls.begin(session, request, hand);
    find_call();
  }
  // Returns the messages of all requests that were sent to the client.
  std::vector<std::string> asked() const {
    std::vector<std::string> out;
    for (const FakeClient::Sent &sent : client.sent) {
      if (sent.kind == BH_OUT_ASK) out.push_back(sent.text);
    }
    return out;
  }
  void answer_last(const std::string &outcome) { answer(asked().back(), outcome); }
  void answer(const std::string &request, const std::string &outcome) {
    const std::string text =
        R"({"jsonrpc":"2.0","id":)" + std::string(mcp::member(request, "id")) + "," + outcome + "}";
    mcp::Scan scan;
    mcp::ScanError error;
    REQUIRE(mcp::scan(text, &scan, &error));
    asks.answered(session, {text, &scan});
  }
  const Call &call() { return *table.get(id); }
  void wait_is_over() {
    table.disarm(*table.get(id));
    calls.timed_out(*table.get(id));
  }
};

const std::string form =
    R"({"method":"elicitation/create","params":{"message":"Which?","requestedSchema":{}}})";
const std::string sample = R"({"method":"sampling/createMessage","params":{"maxTokens":1}})";
const std::string roots = R"({"method":"roots/list"})";

}  // namespace

TEST_CASE("a call is sent again with all answers and the state, and is the same call") {
  Rounds w;
  w.start();
  const std::uint64_t id = w.id, first = w.call().exchange->id;
  w.server_asks_for_input(R"("inputRequests":{"f":)" + form + R"(,"s":)" + sample + R"(,"r":)" +
                          roots + R"(},"requestState":"\u0041\/")");
  REQUIRE(w.asked().size() == 3);
  CHECK(w.outcome() == "asking");
  CHECK(w.capable.in_flight == 0);  // it does not count towards the limit
  CHECK(w.exchange_table.size() == 0);
  CHECK(w.call().open_asks == 3);
  CHECK(mcp::member(w.asked()[0], "params") == R"({"message":"Which?","requestedSchema":{}})");
  for (const FakeClient::Sent &sent : w.client.sent) CHECK(sent.stream == 7);
  w.answer(w.asked()[2], R"("result":{"roots":[]})");
  w.answer(w.asked()[0], R"("result":{"action":"accept","content":{"n":1e2}})");
  CHECK(w.outcome() == "asking");
  w.answer(w.asked()[1], R"("result":{"role":"assistant"})");
  REQUIRE(w.outcome() == "at server");
  CHECK(w.id == id);
  CHECK(w.call().exchange->id != first);
  CHECK(
      w.capable.members ==
      std::vector<std::string>{
          "",
          R"("inputResponses":{"f":{"action":"accept","content":{"n":1e2}},"s":{"role":"assistant"},)"
          R"("r":{"roots":[]}},"requestState":"\u0041\/",)"});
  CHECK(w.policy.flags.size() == 1);  // decided once
  CHECK(w.counters.calls == 1);
  w.server_asks_for_input(R"("inputRequests":{"f":)" + form + "}");
  w.answer_last(R"("result":{"action":"cancel"})");
  CHECK(w.capable.members.back() == R"("inputResponses":{"f":{"action":"cancel"}},)");
  w.server_answers(1);
  CHECK(w.outcome() == "result");
}

TEST_CASE("answers that arrive while the requests are sent are kept") {
  Rounds w;
  w.start();
  w.client.inside = [&] { w.answer_last(R"("result":{"action":"decline"})"); };
  w.server_asks_for_input(R"("inputRequests":{"f":)" + form + R"(,"r":)" + roots + "}");
  CHECK(w.outcome() == "asking");
  w.answer_last(R"("result":{"roots":[]})");
  CHECK(w.outcome() == "at server");
  CHECK(w.capable.members.back() ==
        R"("inputResponses":{"f":{"action":"decline"},"r":{"roots":[]}},)");
}

TEST_CASE("a refusal ends the call, except of an elicitation, and the other requests") {
  Rounds w;
  w.start();
  w.server_asks_for_input(R"("inputRequests":{"f":)" + form + R"(,"s":)" + sample + "}");
  SECTION("sampling") {
    w.answer(w.asked()[1], R"("error":{"code":-1,"message":"User rejected"})");
    CHECK(w.outcome() == "result");
    const std::string result(mcp::member(w.answers_sent()[0], "result"));
    CHECK(mcp::member(result, "isError") == "true");
    CHECK(result.find("sampling/createMessage was refused: User rejected") != std::string::npos);
    CHECK(w.session.load->asks == 0);
    CHECK(w.client.sent.size() == 4);  // two requests, the withdrawal of one, the result
    CHECK(w.client.sent[2].text.find("notifications/cancelled") != std::string::npos);
  }
  SECTION("a long text is cut at a character") {
    std::string message = "x";
    for (int i = 0; i < 150; ++i) message += "\u00e9";
    w.answer(w.asked()[1], R"("error":{"code":-1,"message":")" + message + "\"}");
    REQUIRE(w.answers_sent().size() == 1);
    CHECK(mcp::valid_json(w.answers_sent()[0]));
    CHECK(w.answers_sent()[0].size() < 400);
  }
  SECTION("elicitation") {
    w.answer(w.asked()[0], R"("error":{"code":-32601,"message":"no"})");
    w.answer(w.asked()[1], R"("result":{})");
    CHECK(w.capable.members.back() == R"("inputResponses":{"f":{"action":"cancel"},"s":{}},)");
  }
  SECTION("the client can no longer answer") {
    w.session.input_ended = true;
    w.asks.session_ended(w.session.handle);
    CHECK(w.outcome() == "result");
    CHECK(w.answers_sent()[0].find("cannot be asked") != std::string::npos);
  }
  SECTION("the client is gone") {
    w.session.closing = true;
    w.asks.session_ended(w.session.handle);
    w.ends.end_session(w.session);
    CHECK(w.outcome() == "silence");
    CHECK(w.capable.sent == 1);
  }
}

TEST_CASE("a round without requests is repeated after a pause, and rounds are limited") {
  Rounds w;
  w.start();
  for (std::uint32_t i = 1; i <= InputRounds::max_rounds; ++i) {
    w.server_asks_for_input(R"("requestState":")" + std::to_string(i) + "\"");
    REQUIRE(w.outcome() == "asking");
    CHECK(w.call().timeout_ms <= InputRounds::max_pause_ms);
    w.wait_is_over();
    REQUIRE(w.outcome() == "at server");
    CHECK(w.capable.members.back() == R"("requestState":")" + std::to_string(i) + "\",");
  }
  w.server_asks_for_input(R"("requestState":"s")");
  CHECK(w.outcome() == R"(tool call failed: server \)");
  CHECK(w.capable.sent == InputRounds::max_rounds + 1);
}

TEST_CASE("malformed requests for input are errors; undeclared ones fail the tool") {
  Rounds w;
  w.start();
  SECTION("malformed") {
    w.server_asks_for_input(R"("inputRequests":[])");
    CHECK(w.outcome() == R"(tool call failed: server \)");
  }
  SECTION("undeclared") {
    w.server_asks_for_input(
        R"("inputRequests":{"u":{"method":"elicitation/create","params":{"mode":"url","url":"x:y"}}})");
    CHECK(w.outcome() == "result");
    CHECK(w.answers_sent()[0].find("that was not declared to it") != std::string::npos);
  }
  CHECK(w.asked().empty());
}

TEST_CASE("rules that change while the client is asked are applied before the call is sent again") {
  Rounds w;
  w.start();
  w.server_asks_for_input(R"("inputRequests":{"f":)" + form + "}");
  w.calls.rules_changed();
  SECTION("allowed") {
    w.answer_last(R"("result":{"action":"accept"})");
    CHECK(w.outcome() == "at server");
    CHECK(w.policy.flags == std::vector<std::uint32_t>{0, BH_REQUEST_AGAIN});
    CHECK(w.capable.members.back() == R"("inputResponses":{"f":{"action":"accept"}},)");
  }
  SECTION("blocked") {
    w.policy.verdict = BH_VERDICT_BLOCK;
    w.answer_last(R"("result":{"action":"accept"})");
    CHECK(w.outcome() == "MCP request blocked by policy (rule)");
    CHECK(w.capable.sent == 1);
  }
}

TEST_CASE("the answers of calls that wait for further answers are limited in total") {
  Rounds w;
  w.profile.limits.asks_per_session = 1'000;
  const std::string large = R"("result":{"x":")" + std::string((1u << 20) - 100, 'x') + "\"}";
  std::size_t waiting = 0;
  while (w.answers_sent().empty() && waiting < 100) {
    w.start();
    w.server_asks_for_input(R"("inputRequests":{"a":)" + sample + R"(,"b":)" + sample + "}");
    w.answer(w.asked()[w.asked().size() - 2], large);
    ++waiting;
  }
  CHECK(waiting == 64);  // the last one did not fit
  REQUIRE(w.answers_sent().size() == 1);
  const std::string result(mcp::member(w.answers_sent()[0], "result"));
  CHECK(mcp::member(result, "isError") == "true");
  CHECK(result.find("are too large in total") != std::string::npos);
  CHECK(w.table.size() == 63);
  // The others are not affected: the second answer, which is small, continues a call.
  w.answer(w.asked()[1], R"("result":{})");
  CHECK(w.capable.members.back().starts_with(R"("inputResponses":{"a":{"x":"xxx)"));
  w.ends.end_session(w.session);
}
