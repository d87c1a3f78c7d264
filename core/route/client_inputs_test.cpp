// Tests asking clients of MCP 2026-07-28, which are asked through results and answer by repeating
// their requests.
#include "route/client_inputs.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "route/call_world.hpp"

using namespace bulkhead;

namespace {

struct Asking : World {
  Asking() {
    session.caps = cap::roots;
    session.repeats_requests = true;
    policy.needs = BH_POLICY_DECIDES;
  }
  void ask(const std::string &id_token) {
    const Scanned request(R"({"jsonrpc":"2.0","id":)" + id_token + R"(,"method":"roots/list"})");
    asks.request(lane, 0, request.get());
  }
  void run_until_asked() {
    REQUIRE(wait_for(*loop, [this] { return !input_required().empty(); }));
  }
  void progress(const std::string &amount) {
    const Call &call = *table.get(id);
    const Scanned note(
        R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":)" +
        std::to_string(call.exchange->id) + R"(,"progress":)" + amount + "}}");
    notifications.progress(lane, note.get());
  }
  std::vector<FakeClient::Sent> events() const {
    std::vector<FakeClient::Sent> out;
    for (const FakeClient::Sent &sent : client.sent) {
      if (sent.kind == BH_OUT_EVENT) out.push_back(sent);
    }
    return out;
  }
  std::string_view id_of(const std::string &answer) const { return mcp::member(answer, "id"); }
};

const std::string both =
    R"({"input-1":{"roots":[]},"input-2":{"roots":[{"uri":"file:///w"}]},"other":{}})";

}  // namespace

TEST_CASE("client inputs: the asks of one round are answered by one repetition") {
  Asking w;
  w.begin(1);
  CHECK(w.lane.in_flight == 1);
  w.ask("\"r1\"");
  w.ask("2");
  CHECK(w.client.sent.empty());  // nothing is sent before the round is closed
  CHECK(w.table.get(w.id)->stage == Stage::suspended);
  w.run_until_asked();
  const std::string asked = w.input_required();
  CHECK(w.id_of(asked) == "\"c\"");
  const std::string_view inputs = mcp::member(mcp::member(asked, "result"), "inputRequests");
  CHECK(inputs == R"({"input-1":{"method":"roots/list"},"input-2":{"method":"roots/list"}})");
  CHECK(w.client.sent[0].stream == 7);
  CHECK(w.table.get(w.id)->stage == Stage::awaiting_repeat);
  CHECK(w.lane.in_flight == 0);  // the call no longer counts towards the limit
  CHECK(w.session.parked);
  CHECK_FALSE(w.ends.busy());

  REQUIRE(w.client_repeats(both) != nullptr);
  CHECK(w.table.get(w.id)->stage == Stage::at_server);
  CHECK(w.lane.in_flight == 1);
  CHECK_FALSE(w.session.parked);
  CHECK(w.lane.messages ==
        std::vector<std::string>{
            R"({"jsonrpc":"2.0","id":"r1","result":{"roots":[]}})",
            R"({"jsonrpc":"2.0","id":2,"result":{"roots":[{"uri":"file:///w"}]}})"});
  // Progress and the final response are sent to the repeated request.
  w.progress("5");
  REQUIRE(w.events().size() == 1);
  CHECK(w.events()[0].stream == 8);
  CHECK(w.events()[0].text.find(R"("progressToken":"new")") != std::string::npos);
  w.server_answers(1);
  REQUIRE(w.answers_sent().size() == 1);
  CHECK(w.client.sent.back().stream == 8);
  CHECK(w.answers_sent()[0] == R"({"jsonrpc":"2.0","id":"again","result":{"y":"y"}})");
  CHECK(w.outcome() == "result");
}

TEST_CASE("client inputs: the same answers join the call and get its stored end, others do not") {
  Asking w;
  w.begin(1);
  w.ask("1");
  w.run_until_asked();
  const std::string yes = R"({"input-1":{"roots":[]}})", no = R"({"input-1":{"roots":[1]}})";
  w.client_repeats(yes);
  w.client_repeats(yes);
  w.client_repeats(no);
  REQUIRE(w.answers_sent().size() == 1);
  CHECK(w.answers_sent()[0].find("-32602") != std::string::npos);
  w.server_answers(1);
  CHECK(w.answers_sent().size() == 3);
  w.client_repeats(yes);
  w.client_repeats(no);
  REQUIRE(w.answers_sent().size() == 5);
  CHECK(w.answers_sent()[3] == R"({"jsonrpc":"2.0","id":"again","result":{"y":"y"}})");
  CHECK(w.answers_sent()[4].find("with other inputResponses") != std::string::npos);
  CHECK(w.lane.messages.size() == 1);  // the server has received one answer
}

TEST_CASE("client inputs: a client that is gone cancels its call, except while it is asked") {
  Asking w;
  w.begin(1);
  w.ask("1");
  SECTION("before it is asked") {
    const auto request = w.sessions.handles().back();
    w.inputs.ended(*w.sessions.find(request));
  }
  SECTION("after its repetition") {
    w.run_until_asked();
    CHECK(w.lane.retracts == 0);
    Session *again = w.client_repeats();
    Session *joined = w.client_repeats();
    w.inputs.ended(*again);
    CHECK(w.lane.retracts == 0);  // another request waits
    w.inputs.ended(*joined);
  }
  CHECK(w.lane.retracts == 1);
  CHECK(w.table.size() == 0);
  CHECK(w.inputs.size() == 0);
  CHECK(w.answers_sent().empty());
}

TEST_CASE("client inputs: a client that never repeats its request ends its call") {
  Asking w;
  w.profile.limits.ask_timeout_ms = 30;
  w.begin(1);
  w.ask("\"r\"");
  w.run_until_asked();
  REQUIRE(wait_for(*w.loop, [&w] { return w.table.size() == 0; }));
  CHECK(w.lane.retracts == 1);
  REQUIRE(w.lane.messages.size() == 1);  // the server's request is answered
  CHECK(w.lane.messages[0].find(R"("id":"r")") != std::string::npos);
  CHECK(w.lane.messages[0].find("-32601") != std::string::npos);
  CHECK(w.inputs.size() == 0);
  w.client_repeats();
  REQUIRE(w.answers_sent().size() == 1);
  CHECK(w.answers_sent()[0].find("the call of this requestState has ended") != std::string::npos);
}

TEST_CASE("client inputs: an approval form is a result, and the call resumes with its answer") {
  Asking w;
  w.profile.approval.elicitation = true;
  w.session.caps = cap::elicitation;
  w.session.revision = newest_revision;
  stages.at("approving")(w);
  CHECK(w.client.sent.empty());
  w.run_until_asked();
  const std::string asked = w.input_required();
  CHECK(asked.find(R"("method":"elicitation/create")") != std::string::npos);
  CHECK(asked.find("requires approval") != std::string::npos);
  CHECK(w.lane.sent == 0);
  SECTION("the client allows it") {
    w.client_repeats();
    CHECK(w.outcome() == "at server");
    CHECK(w.lane.sent == 1);
    w.server_answers(1);
    CHECK(w.outcome() == "result");
  }
  SECTION("the client denies it") {
    w.client_repeats(R"({"input-1":{"action":"decline"}})");
    CHECK(w.outcome().find("needs approval, which was denied") != std::string::npos);
    CHECK(w.lane.sent == 0);
  }
  SECTION("it is allowed elsewhere: the end is stored for the client") {
    w.calls.approval_given(w.id, true, ApprovalSurface::none, {});
    CHECK(w.lane.sent == 1);
    w.server_answers(1);
    CHECK(w.answers_sent().empty());
    w.client_repeats(R"({"input-1":{"action":"decline"}})");
    CHECK(w.outcome() == "result");
    CHECK(w.lane.sent == 1);
  }
}

TEST_CASE(
    "client inputs: a request is answered although the end of its call waits for its record") {
  Asking w;
  w.telemetry.needs = BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS;
  w.recorder.add_sink(&telemetry_table, &w.telemetry);
  w.begin(1);
  w.commit();  // the intent
  w.ask("1");
  SECTION("the call ends before its round is closed") {
    w.server_answers(1);
    REQUIRE(w.table.size() == 0);
    const std::uint64_t until = w.loop->now_ns() + 2 * ParkedInputs::window_ms * 1'000'000;
    REQUIRE(wait_for(*w.loop, [&] { return w.loop->now_ns() > until; }));
  }
  SECTION("the client answers after the end of the call") {
    w.run_until_asked();
    w.server_answers(1);
    REQUIRE(w.table.size() == 0);
    w.client_repeats();
  }
  SECTION("the client repeats the answers to an earlier round after the end of the call") {
    w.run_until_asked();
    w.client_repeats();
    w.ask("2");
    const auto rounds = [&w] {
      return std::count_if(w.client.sent.begin(), w.client.sent.end(), [](const auto &sent) {
        return sent.text.find("input_required") != std::string::npos;
      });
    };
    REQUIRE(wait_for(*w.loop, [&] { return rounds() == 2; }));
    w.server_answers(1);
    REQUIRE(w.table.size() == 0);
    w.client_repeats();  // with the state of the first round
    CHECK(rounds() == 2);
  }
  CHECK(w.answers_sent().empty());
  w.commit();  // the record of the call
  REQUIRE(w.answers_sent().size() == 1);
  CHECK(mcp::member(w.answers_sent()[0], "result") == R"({"y":"y"})");
}

TEST_CASE(
    "client inputs: a call whose place is needed is cancelled, and its client gets the reason") {
  Asking w;
  w.profile.limits.asks_per_session = 1;
  w.begin(1);
  w.ask("\"r1\"");
  w.run_until_asked();
  const std::uint64_t first = w.id;
  // Another connection of the same peer makes a call, whose client is asked for input.
  Session &other = open_session(w.sessions, w.client);
  other.address = "127.0.0.1:8";
  other.caps = cap::roots;
  other.repeats_requests = true;
  w.World::begin(other, "\"d\"", 1);
  const Scanned second(R"({"jsonrpc":"2.0","id":"r2","method":"roots/list"})");
  w.asks.request(w.lane, other.open_calls.head->exchange->id, second.get());
  REQUIRE(wait_for(*w.loop, [&w] {
    std::size_t asked = 0;
    for (const FakeClient::Sent &sent : w.client.sent)
      asked += sent.text.find("input_required") != std::string::npos ? 1 : 0;
    return asked == 2;
  }));
  CHECK(w.table.get(first) == nullptr);
  CHECK(w.lane.retracts == 1);  // the server is notified
  REQUIRE(w.lane.messages.size() == 1);
  CHECK(w.lane.messages[0].starts_with(R"({"jsonrpc":"2.0","id":"r1","error":)"));
  CHECK(other.open_calls.size == 1);
  w.client_repeats();  // repeats the first call
  REQUIRE(w.answers_sent().size() == 1);
  CHECK(w.answers_sent()[0].find("-32602") != std::string::npos);
  CHECK(w.answers_sent()[0].find("too many calls wait for input") != std::string::npos);
  CHECK(other.load->asks == 1);
  CHECK(w.session.load->asks == 0);
  w.ends.end_session(other);
}

TEST_CASE("client inputs: a response that is too large to be stored is replaced by an error") {
  Asking w;
  w.begin(1);
  w.ask("1");
  w.run_until_asked();
  w.server_answers(ParkedLimits{}.bytes_per_principal);
  CHECK(w.table.size() == 0);
  CHECK(w.answers_sent().empty());
  w.client_repeats();
  REQUIRE(w.answers_sent().size() == 1);
  CHECK(w.answers_sent()[0].starts_with(
      R"({"jsonrpc":"2.0","id":"again","error":{"code":-32603,"message":"the call has run, but )"));
}

TEST_CASE("client inputs: a request is kept only if a state may have to be sealed for it") {
  Asking w;
  const auto is_kept = [&w](bool repeats, ClientCaps caps, std::string_view revision) {
    w.session.repeats_requests = repeats;
    w.session.caps = caps;
    w.lane.protocol = revision;
    w.begin(1);
    const bool kept = w.table.get(w.id)->request.kept.any();
    if (kept) {
      CHECK(w.table.get(w.id)->request.kept.target() == "s__t");
      CHECK(w.table.get(w.id)->request.kept.arguments() == R"({"x":"x"})");
    }
    w.server_answers(1);
    return kept;
  };
  CHECK(is_kept(true, cap::roots, "2025-11-25"));
  CHECK(is_kept(true, cap::elicitation, "2025-11-25"));
  CHECK(is_kept(true, 0, "2026-07-28"));
  CHECK(is_kept(true, 0, ""));  // not connected yet
  CHECK_FALSE(is_kept(true, 0, "2025-11-25"));
  CHECK_FALSE(is_kept(false, cap::roots, "2025-11-25"));
  CHECK_FALSE(is_kept(false, 0, "2026-07-28"));
}

TEST_CASE("client inputs: the bytes that are kept for requests are limited") {
  Asking w;
  w.profile.limits.message_bytes = 50'100;
  const auto begin = [&w](Session &s, std::size_t bytes) {
    s.caps = cap::roots;
    s.repeats_requests = true;
    const std::size_t before = s.open_calls.size;
    w.begin(s, "\"n\"", bytes);
    REQUIRE(s.open_calls.size == before + 1);
    return s.open_calls.head;  // the newest call
  };
  const Call *large = begin(w.session, 40'000);
  CHECK(large->request.kept.any());
  CHECK_FALSE(begin(w.session, 40'000)->request.kept.any());  // the client's limit
  CHECK(begin(w.session, 1'000)->request.kept.any());         // small requests are not counted
  // The limit for all clients together is four times the limit for one client.
  for (int i = 0; i < 4; ++i) {
    Session &other = open_session(w.sessions, w.client);
    CHECK(begin(other, 40'000)->request.kept.any());
  }
  Session &last = open_session(w.sessions, w.client);
  Call *unkept = begin(last, 40'000);
  CHECK_FALSE(unkept->request.kept.any());
  // Its client cannot be asked, so the server gets an error; the call continues.
  const std::string why = w.inputs.ask(*unkept, 1, {mcp::Method::roots_list, {}, 1'000});
  CHECK(why.find("too large") != std::string::npos);
  CHECK(w.inputs.size() == 0);
  CHECK(unkept->stage == Stage::at_server);
  // A call that ends makes room.
  w.ends.end_session(w.session);
  CHECK(begin(last, 40'000)->request.kept.any());
  CHECK(begin(w.session, 5'000)->request.kept.any());
}
