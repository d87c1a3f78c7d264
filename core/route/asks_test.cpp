// Tests server-initiated requests and the clients' responses to them.
#include "route/asks.hpp"

#include <catch2/catch.hpp>

#include "route/message_world.hpp"

using namespace bulkhead;

namespace {

struct World : MessageWorld {
  void ask(const std::string &method = "sampling/createMessage", std::uint64_t hint = 0,
           const std::string &id = "\"r\"") {
    const Scanned request(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":")" + method +
                          R"(","params":{"_meta":{"progressToken":"p"}}})");
    asks.request(lane, hint, request.get());
  }
  void answer(Session &s, const std::string &id, const std::string &result = "{}") {
    const Scanned message(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":)" + result + "}");
    asks.answered(s, message.get());
  }
  std::string asked(const Session &s) const {
    const auto sent = sent_to(s, BH_OUT_ASK);
    return sent.empty() ? "" : std::string(mcp::member(sent.back(), "id"));
  }
  std::string to_server() const { return lane.messages.empty() ? "" : lane.messages.back(); }
};

}  // namespace

TEST_CASE(
    "a request reaches the client whose call caused it, and the response has the server's id") {
  World w;
  Call &call = w.call_of(w.first);
  w.ask();
  const std::string id = w.asked(w.first);
  REQUIRE_FALSE(id.empty());
  const std::string sent = w.sent_to(w.first, BH_OUT_ASK)[0];
  CHECK(at(sent, {"params", "_meta", "progressToken"}) == id);
  CHECK(call.stage == Stage::suspended);
  CHECK(call.deadline_tick == 0);
  CHECK(w.first.load->asks == 1);
  const Scanned progress(R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
                         R"({"progressToken":)" +
                         id + R"(,"progress":1}})");
  CHECK(w.asks.progress_of(w.first, progress.get()).token == "\"p\"");
  CHECK(w.asks.progress_of(w.second, progress.get()).lane == nullptr);
  w.answer(w.second, id);  // ignored: the request was sent to the other client
  CHECK(w.lane.messages.empty());
  w.answer(w.first, id, R"({"ok":true})");
  CHECK(w.to_server() == R"({"jsonrpc":"2.0","id":"r","result":{"ok":true}})");
  CHECK(call.stage == Stage::at_server);
  CHECK(call.deadline_tick != 0);
  CHECK(w.first.load->asks == 0);
  w.answer(w.first, id);
  CHECK(w.lane.messages.size() == 1);
  CHECK(w.counters.stray_answers == 2);
}

TEST_CASE("a request about a task is sent only to the client of the task") {
  World w;
  const char *const methods[] = {"elicitation/create", "sampling/createMessage", "roots/list"};
  w.lane_for_roots.task_notes.keep({"1", R"("sealed")", "tool", w.second.handle});
  w.first.caps |= cap::roots;
  w.second.caps |= cap::roots;
  const auto ask = [&](const std::string &method, std::string_view task, std::uint64_t hint = 0) {
    const Scanned request(R"({"jsonrpc":"2.0","id":"r","method":")" + method +
                          R"(","params":{"_meta":{"io.modelcontextprotocol/related-task":)" +
                          std::string(task) + "}}}");
    w.client.sent.clear();
    w.lane_for_roots.messages.clear();
    w.asks.request(w.lane_for_roots, hint, request.get());
  };
  const auto sent_to_server = [&w](std::initializer_list<std::string_view> path) {
    const auto &messages = w.lane_for_roots.messages;
    return messages.empty() ? std::string() : std::string(at(messages.back(), path));
  };
  Call &of_first = w.call_at(w.lane_for_roots, w.first);
  for (const std::string method : methods) {
    // Only another client has a call in flight.
    ask(method, R"({"taskId":"1"})");
    CHECK(w.asked(w.first).empty());
    REQUIRE_FALSE(w.asked(w.second).empty());
    CHECK(at(w.sent_to(w.second, BH_OUT_ASK)[0],
             {"params", "_meta", "io.modelcontextprotocol/related-task"}) ==
          R"({"taskId":"sealed"})");
    for (const std::string_view unknown : {R"({"taskId":"2"})", "{}", R"("1")"}) {
      ask(method, unknown);
      CHECK(w.client.sent.empty());
      CHECK(sent_to_server({"error", "code"}) == "-32602");
    }
    // The stream is that of another client.
    ask(method, R"({"taskId":"1"})", of_first.exchange->id);
    CHECK(w.client.sent.empty());
    CHECK(w.lane_for_roots.messages.size() == 1);
  }
  // The request belongs to a call that waits for the result, not to a later one about this task.
  Call *calls[2];
  for (const int i : {0, 1}) {
    calls[i] = &w.call_at(w.lane_for_roots, w.second,
                          i == 0 ? mcp::Method::tasks_result : mcp::Method::tasks_get);
    calls[i]->request.task_id = R"("sealed")";
    calls[i]->request.reply.stream = 20 + static_cast<std::uint64_t>(i);
  }
  Call &other = w.call_at(w.lane_for_roots, w.second);
  ask(methods[0], R"({"taskId":"1"})");
  REQUIRE(w.client.sent.size() == 1);
  CHECK(w.client.sent[0].stream == 20);
  CHECK(calls[0]->stage == Stage::suspended);
  CHECK(calls[1]->stage == Stage::at_server);
  CHECK(other.stage == Stage::at_server);
  CHECK(of_first.stage == Stage::at_server);
}

TEST_CASE(
    "a request to which no client can respond is refused in the format that its method requires") {
  World w;
  struct Case {
    const char *method, *member, *text;
  };
  SECTION("no client, or several clients, may have caused it") {
    if (GENERATE(true, false)) {
      w.call_of(w.first);
      w.call_of(w.second);
    }
    w.ask();
    CHECK(at(w.to_server(), {"error", "code"}) == "-1");
    w.ask("elicitation/create");
    CHECK(at(w.to_server(), {"result", "action"}) == R"("cancel")");
  }
  SECTION("the client does not support the method, or the method is unknown") {
    w.call_of(w.first);
    for (const char *method : {"roots/list", "tools/list", "nonsense"}) {
      w.ask(method);
      CHECK(at(w.to_server(), {"error", "code"}) == "-32601");
    }
  }
  SECTION("the client has too many requests, or has closed its input") {
    w.call_of(w.first);
    w.own_limits.asks_per_session = 1;
    if (GENERATE(true, false)) {
      w.ask();
      w.lane.messages.clear();
    } else {
      w.first.input_ended = true;
    }
    w.ask("elicitation/create");
    CHECK(at(w.to_server(), {"result", "action"}) == R"("cancel")");
  }
  SECTION("the gateway responds to a ping") {
    w.ask("ping");
    CHECK(w.to_server() == R"({"jsonrpc":"2.0","id":"r","result":{}})");
    CHECK(w.counters.refused_asks == 0);
    return;
  }
  CHECK(w.counters.refused_asks > 0);
}

TEST_CASE("the gateway responds to requests for static roots without asking a client") {
  World w;
  ServerDef def = server_named("s");
  def.roots = RootsMode::static_list;
  def.root_folders = {"/srv/a b", "/", "/x/\xc3\xa4"};
  w.upstream.redefine(def);
  w.first.caps |= cap::roots;
  if (GENERATE(true, false)) w.call_of(w.first);
  w.ask("roots/list", 0, "7");
  CHECK(w.client.sent.empty());
  CHECK(w.to_server() ==
        R"({"jsonrpc":"2.0","id":7,"result":{"roots":[{"uri":"file:///srv/a%20b","name":"a b"},)"
        R"({"uri":"file:///","name":"/"},{"uri":"file:///x/%C3%A4","name":")"
        "\xc3\xa4\"}]}}");
  def.root_folders.clear();
  w.upstream.redefine(def);
  w.ask("roots/list");
  CHECK(w.to_server() == R"({"jsonrpc":"2.0","id":"r","result":{"roots":[]}})");
  CHECK(w.counters.refused_asks == 0);
  CHECK_FALSE(w.upstream.requested_roots);
}

TEST_CASE("if roots are off, a server's request for roots is shown in its status") {
  World w;
  w.first.caps |= cap::roots;
  w.call_of(w.first);
  w.ask("sampling/createMessage");
  w.ask("elicitation/create");
  CHECK_FALSE(w.upstream.status().requested_roots);
  w.ask("roots/list");
  CHECK(at(w.to_server(), {"error", "code"}) == "-32601");
  CHECK(w.sent_to(w.first, BH_OUT_ASK).size() == 2);
  CHECK(w.upstream.requested_roots);
  ServerDef def = server_named("s");
  def.roots = RootsMode::per_client;
  w.upstream.requested_roots = false;
  w.upstream.redefine(def);
  w.ask("roots/list");  // refused: this lane is for clients without roots
  CHECK(at(w.to_server(), {"error", "code"}) == "-32601");
  CHECK_FALSE(w.upstream.requested_roots);
}

TEST_CASE(
    "on a pipe, a request stays open until the last call that may have caused it is finished") {
  World w;
  Call &one = w.call_of(w.first), &two = w.call_of(w.first);
  w.ask();
  CHECK(one.stage == Stage::suspended);
  CHECK(two.stage == Stage::suspended);
  w.asks.call_ended(two.id, true);
  CHECK(w.first.load->asks == 1);
  w.asks.call_ended(one.id, true);
  CHECK(w.first.load->asks == 0);
  CHECK(at(w.to_server(), {"error", "code"}) == "-1");
  CHECK(w.sent_to(w.first, BH_OUT_EVENT).size() == 1);
}

TEST_CASE("a request is closed with its client, its server connection, or its cancellation") {
  World w;
  w.call_of(w.first);
  w.ask();
  const std::string id = w.asked(w.first);
  SECTION("the client has disconnected: the server gets an error") {
    w.asks.session_ended(w.first.handle);
    CHECK(at(w.to_server(), {"error", "code"}) == "-1");
    CHECK(w.sent_to(w.first, BH_OUT_EVENT).empty());
  }
  SECTION("the connection is lost: the client is notified") {
    w.asks.connection_lost(w.lane);
    CHECK(w.lane.messages.empty());
    CHECK(at(w.sent_to(w.first, BH_OUT_EVENT).at(0), {"params", "requestId"}) == id);
  }
  SECTION("the server has cancelled the request: the client receives the server's reason") {
    const Scanned cancel(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":)"
                         R"({"requestId":"r","reason":"enough"}})");
    w.asks.cancelled(w.lane, cancel.get());
    const std::string told = w.sent_to(w.first, BH_OUT_EVENT).at(0);
    CHECK(at(told, {"params", "requestId"}) == id);
    CHECK(at(told, {"params", "reason"}) == R"("enough")");
  }
  w.lane.messages.clear();
  w.answer(w.first, id);  // ignored: the request is already closed
  CHECK(w.lane.messages.empty());
  CHECK(w.first.load->asks == 0);
}

TEST_CASE("a policy that evaluates input receives both the request and the response") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES | BH_POLICY_JUDGES_INPUT;
  w.gate.use(&policy_table, &w.policy);
  w.call_of(w.first);
  SECTION("the request waits for the policy") {
    w.policy.decides = BH_PENDING;
    w.ask();
    CHECK(w.asked(w.first).empty());
    w.judged.decided(w.policy.numbers.at(0), {});
    REQUIRE(w.passed_on.size() == 1);
    const Scanned message(w.passed_on[0].message);
    w.asks.ask_judged(w.lane, 0, message.get(), w.passed_on[0].to.session);
    CHECK_FALSE(w.asked(w.first).empty());
  }
  SECTION("the response is refused") {
    w.ask();
    w.policy.verdict = BH_VERDICT_BLOCK;
    w.answer(w.first, w.asked(w.first));
    REQUIRE(w.refusals.size() == 1);
    w.asks.answer_refused(w.refusals[0].ask);
    CHECK(at(w.to_server(), {"error", "code"}) == "-1");
    CHECK(w.first.load->asks == 0);
  }
}

TEST_CASE("a request that the policy has allowed for one client is not sent to another") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES | BH_POLICY_JUDGES_INPUT;
  w.gate.use(&policy_table, &w.policy);
  w.policy.decides = BH_PENDING;
  FakeLane &lane = w.lane_for_roots;
  const bool about_task = GENERATE(true, false), gone = GENERATE(true, false);
  lane.task_notes.keep({"1", R"("sealed")", "tool", w.first.handle});
  if (!about_task) w.call_at(lane, w.first);
  const Scanned request(
      R"({"jsonrpc":"2.0","id":"r","method":"sampling/createMessage","params":{"_meta":{)" +
      std::string(about_task ? R"("io.modelcontextprotocol/related-task":{"taskId":"1"})" : "") +
      "}}}");
  w.asks.request(lane, 0, request.get());
  w.judged.decided(w.policy.numbers.at(0), {});
  REQUIRE(w.passed_on.size() == 1);
  CHECK(w.passed_on[0].to.session == w.first.handle);
  // In the meantime, the server has created a task with the same id, or works for another client.
  lane.task_notes.keep({"1", R"("sealed")", "tool", w.second.handle});
  if (!about_task) {
    Exchange &e = *lane.exchanges.head;
    lane.detach(e);
    w.table.close(e);
    w.call_at(lane, w.second);
  }
  if (gone) w.sessions.erase(w.first.handle);
  const Scanned message(w.passed_on[0].message);
  w.asks.ask_judged(lane, 0, message.get(), w.passed_on[0].to.session);
  CHECK(w.client.sent.empty());
  REQUIRE(lane.messages.size() == 1);
  CHECK(at(lane.messages[0], {"id"}) == R"("r")");
  CHECK(at(lane.messages[0], {"error", "code"}) == "-1");
  // The request is sent if the policy has allowed it for the client that would receive it.
  w.asks.ask_judged(lane, 0, message.get(), w.second.handle);
  CHECK(w.sent_to(w.second, BH_OUT_ASK).size() == 1);
}

TEST_CASE("an approval form is answered by its client or lost with it") {
  World w;
  const std::uint64_t call = w.call_of(w.first).id;
  const std::uint64_t id = w.asks.open_form(w.first, call, 1000);
  CHECK(w.first.load->asks == 1);
  SECTION("answered") {
    w.answer(w.first, std::to_string(id), R"({"action":"accept"})");
    REQUIRE(w.forms_answered.size() == 1);
    CHECK(w.forms_answered[0].first == call);
  }
  SECTION("lost") {
    w.asks.session_ended(w.first.handle);
    CHECK(w.forms_lost == std::vector{call});
  }
  SECTION("the call is approved elsewhere: the client is notified") {
    w.asks.close_form(call);
    CHECK(w.sent_to(w.first, BH_OUT_EVENT).size() == 1);
    CHECK(w.forms_lost.empty());
  }
  CHECK(w.first.load->asks == 0);
}

TEST_CASE(
    "a request that cannot be rewritten reaches no client, and the server receives an error") {
  World w;
  Call &call = w.call_of(w.first);
  // No message has such ranges. They make the two edits of the request overlap.
  Scanned request(R"({"jsonrpc":"2.0","id":"r","method":"sampling/createMessage","params":)"
                  R"({"secret":"s","_meta":{"progressToken":"p"}}})");
  request.scan.progress_token = request.scan.id;
  w.asks.request(w.lane, 0, request.get());
  CHECK(w.client.sent.empty());
  REQUIRE(w.lane.messages.size() == 1);
  CHECK(mcp::member(w.to_server(), "id") == "\"r\"");
  CHECK(at(w.to_server(), {"error", "code"}).starts_with('-'));
  CHECK(w.lost == 1);
  CHECK(w.counters.refused_asks == 1);
  CHECK(w.first.load->asks == 0);
  CHECK(call.stage == Stage::at_server);
  CHECK(call.deadline_tick != 0);
  w.ask();  // the next request is sent
  CHECK_FALSE(w.asked(w.first).empty());
}

TEST_CASE("a response that cannot be rewritten is not sent, and the server receives an error") {
  World w;
  Call &call = w.call_of(w.first);
  const bool broken = GENERATE(true, false);
  w.ask();
  const std::string id = w.asked(w.first);
  Scanned response(R"({"jsonrpc":"2.0","id":)" + id + R"(,"result":{"x":"secret"}})");
  // No message has such a range: it extends beyond the message, so the edit is invalid.
  if (broken) response.scan.id.end = static_cast<std::uint32_t>(response.text.size()) + 1;
  w.asks.answer_judged(parse_number(id), response.get());
  REQUIRE(w.lane.messages.size() == 1);
  CHECK(mcp::member(w.to_server(), "id") == "\"r\"");
  CHECK(at(w.to_server(), {"result", "x"}) == (broken ? "" : "\"secret\""));
  CHECK((w.to_server().find("secret") == std::string::npos) == broken);
  CHECK(at(w.to_server(), {"error", "code"}).starts_with('-') == broken);
  CHECK(w.lost == (broken ? 1 : 0));
  CHECK(w.counters.refused_asks == (broken ? 1 : 0));
  // In both cases, the server's request is complete.
  CHECK(w.first.load->asks == 0);
  CHECK(call.stage == Stage::at_server);
  CHECK(call.deadline_tick != 0);
  w.answer(w.first, id);
  CHECK(w.lane.messages.size() == 1);
}
