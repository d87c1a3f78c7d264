// Tests a telemetry plugin that commits records: a message is forwarded only after its record is
// committed. Also tests records that do not describe calls.
#include <catch2/catch.hpp>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "embed/fake_policy.hpp"
#include "embed/fake_world.hpp"
#include "embed/host_impl.hpp"
#include "embed/judged_world.hpp"

using namespace bulkhead;

// The number of nanoseconds by which this program's clocks are ahead of the system's clocks.
static std::int64_t ahead_ns = 0;

extern "C" int clock_gettime(clockid_t clock, timespec *now) noexcept {
  constexpr std::int64_t second = 1'000'000'000;
  const long result = ::syscall(SYS_clock_gettime, clock, now);
  if (result != 0) return static_cast<int>(result);
  const std::int64_t total = now->tv_nsec + ahead_ns;
  now->tv_sec += total / second;
  now->tv_nsec = total % second;
  return 0;
}

namespace {

struct CommitWorld : JudgedWorld {
  std::vector<std::string> got;
  std::unique_ptr<LocalClient> client;

  explicit CommitWorld(std::uint32_t telemetry_needs, std::uint32_t policy_needs = 0)
      : JudgedWorld(policy_needs) {
    judge.telemetry_needs = telemetry_needs;
    profile.identity = {"/p.toml", "me"};
  }
  void start() {
    JudgedWorld::start();
    client = host->connect([this](std::string_view message) { got.emplace_back(message); });
    client->send(
        R"({"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}})");
  }
  void call(const std::string &id, const std::string &tool, const std::string &more = "") {
    client->send(R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"tools/call","params":{"name":")" +
                 tool + "\"" + more + "}}");
  }
  void answer(const std::string &result) {
    up.send("a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(up.last("a")) +
                     R"(,"result":)" + result + "}");
  }
  bool at_server(std::string_view text) { return up.last("a").find(text) != std::string::npos; }
  // Returns all records of one kind that the plugin has received so far.
  std::vector<FakeJudge::Kept> of_kind(std::uint32_t kind) const {
    std::vector<FakeJudge::Kept> out;
    for (const auto &one : judge.records) {
      if (one.kind == kind) out.push_back(one);
    }
    return out;
  }
  bool has_records(std::uint32_t kind, std::size_t n) {
    return turn_until([&] { return of_kind(kind).size() >= n; });
  }
  std::uint64_t counter(std::string_view name) const {
    for (const auto &[key, value] : host->status().counters) {
      if (key == name) return value;
    }
    return 0;
  }
};

constexpr std::uint32_t commits = BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS;

}  // namespace

TEST_CASE("requests and responses are forwarded only after their record is committed") {
  CommitWorld w(commits);
  w.start();
  REQUIRE(w.has_records(BH_RECORD_CALL, 1));
  w.turn(20);
  CHECK(w.got.empty());  // not even the response to the handshake has been sent
  w.judge.commit();
  REQUIRE(w.turn_until([&] { return w.got.size() == 1; }));

  w.call("1", "a__x", R"(,"arguments":{"n":1})");
  REQUIRE(w.has_records(BH_RECORD_INTENT, 1));
  w.turn(20);
  CHECK_FALSE(w.at_server("tools/call"));
  const auto intent = w.of_kind(BH_RECORD_INTENT)[0];
  CHECK(intent.server == "a");
  CHECK(intent.name == "x");
  CHECK(intent.request == R"({"name":"a__x","arguments":{"n":1}})");
  CHECK(intent.response.empty());
  w.judge.commit();
  REQUIRE(w.turn_until([&] { return w.at_server("tools/call"); }));

  w.answer(R"({"content":[]})");
  REQUIRE(w.has_records(BH_RECORD_CALL, 2));
  w.turn(20);
  CHECK(w.got.size() == 1);
  const auto record = w.of_kind(BH_RECORD_CALL)[1];
  CHECK(record.intent == intent.number);
  CHECK(record.outcome == BH_OUTCOME_OK);
  CHECK(record.response == R"({"content":[]})");
  w.judge.commit();
  REQUIRE(w.turn_until([&] { return w.got.size() == 2; }));
  CHECK(w.got[1] == R"({"jsonrpc":"2.0","id":1,"result":{"content":[]}})");
  CHECK(w.of_kind(BH_RECORD_CALL).size() == 2);
}

TEST_CASE("responses and errors wait for their records and keep their order") {
  CommitWorld w(commits);
  w.start();
  w.client->send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  w.client->send(R"({"jsonrpc":"2.0","id":2,"method":"no/such"})");
  REQUIRE(w.has_records(BH_RECORD_CALL, 3));
  w.turn(20);
  CHECK(w.got.empty());
  w.judge.commit();
  REQUIRE(w.turn_until([&] { return w.got.size() == 3; }));
  CHECK(w.got[1].find("\"id\":1") != std::string::npos);
  CHECK(w.got[2].find("Method not found") != std::string::npos);
}

TEST_CASE("a call that is cancelled before its intent is committed is never sent") {
  CommitWorld w(commits);
  w.start();
  w.call("1", "a__x");
  REQUIRE(w.has_records(BH_RECORD_INTENT, 1));
  w.client->send(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  REQUIRE(w.has_records(BH_RECORD_CALL, 3));
  w.judge.commit();
  w.turn(20);
  CHECK_FALSE(w.at_server("tools/call"));
  CHECK(w.of_kind(BH_RECORD_CALL)[2].outcome == BH_OUTCOME_CANCELLED);
}

TEST_CASE("a client that disconnects while responses wait for their records leaves no state") {
  CommitWorld w(commits);
  w.start();
  w.call("1", "a__x");
  w.client.reset();
  w.judge.commit();
  w.turn(20);
  CHECK(w.got.empty());
  CHECK(w.host->status().in_flight == 0);
}

TEST_CASE(
    "if a record is not committed in time, the client receives an error that fits the message") {
  CommitWorld w(commits);
  w.start();
  REQUIRE(w.has_records(BH_RECORD_CALL, 1));
  w.judge.commit();
  REQUIRE(w.turn_until([&] { return w.got.size() == 1; }));
  constexpr std::int64_t late_ns = (BH_TELEMETRY_COMMIT_MS + 1'000) * std::int64_t{1'000'000};
  SECTION("an intent: the call has not been sent, and the error says so while the disk is stuck") {
    w.call("1", "a__x");
    REQUIRE(w.has_records(BH_RECORD_INTENT, 1));
    ahead_ns += late_ns;
    REQUIRE(w.turn_until([&] { return w.got.size() == 2; }));
    CHECK(w.got[1].find("\"id\":1") != std::string::npos);
    CHECK(w.got[1].find("within 10000 ms; it has not run") != std::string::npos);
    CHECK(w.counter("refused_unrecorded") == 1);
    ahead_ns += late_ns;
    w.turn(50);
    w.judge.commit();
    w.turn(50);
    CHECK(w.got.size() == 2);
    CHECK_FALSE(w.at_server("tools/call"));
  }
  SECTION("a response: the call may have been executed") {
    w.call("1", "a__x");
    REQUIRE(w.has_records(BH_RECORD_INTENT, 1));
    w.judge.commit();
    REQUIRE(w.turn_until([&] { return w.at_server("tools/call"); }));
    w.answer(R"({"content":[]})");
    REQUIRE(w.has_records(BH_RECORD_CALL, 2));
    ahead_ns += late_ns;
    REQUIRE(w.turn_until([&] { return w.got.size() == 2; }));
    CHECK(w.got[1].find("\"id\":1") != std::string::npos);
    CHECK(w.got[1].find("the request may have run") != std::string::npos);
    CHECK(w.counter("answers_withheld") == 1);
  }
  SECTION("a response from the gateway: no server has executed the request") {
    w.client->send(R"({"jsonrpc":"2.0","id":2,"method":"no/such"})");
    REQUIRE(w.has_records(BH_RECORD_CALL, 2));
    ahead_ns += late_ns;
    REQUIRE(w.turn_until([&] { return w.got.size() == 2; }));
    CHECK(w.got[1].find("no server has run the request") != std::string::npos);
  }
  SECTION("invalid JSON: the error response does not wait") {
    w.client->send(R"({"jsonrpc":"2.0","id":2,"method":"ping"})");
    REQUIRE(w.has_records(BH_RECORD_CALL, 2));
    w.client->send("nonsense");
    REQUIRE(w.turn_until([&] { return w.got.size() == 2; }));
    CHECK(w.got[1].find("-32700") != std::string::npos);
    w.judge.commit();
    REQUIRE(w.turn_until([&] { return w.got.size() == 3; }));
  }
}

TEST_CASE(
    "a rejected call has no intent, and a rewritten call's intent has the arguments that are "
    "sent") {
  CommitWorld w(commits, BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS);
  w.judge.judge = [](const FakeJudge::Asked &asked, bh_verdict *out) -> bh_status {
    out->verdict = asked.name == "x" ? BH_VERDICT_BLOCK : BH_VERDICT_REWRITE;
    out->rule = bh::str("r");
    out->arguments = bh::str(R"({"card":"***"})");
    return BH_OK;
  };
  w.start();
  w.call("1", "a__x", R"(,"arguments":{"card":"4111"})");
  w.call("2", "a__y", R"(,"arguments":{"card":"4111"})");
  REQUIRE(w.has_records(BH_RECORD_INTENT, 1));
  w.judge.commit();
  REQUIRE(w.turn_until([&] { return w.at_server(R"({"card":"***"})"); }));
  w.answer("{}");
  REQUIRE(w.has_records(BH_RECORD_CALL, 3));
  const auto calls = w.of_kind(BH_RECORD_CALL);
  CHECK(calls[1].intent == 0);
  CHECK(calls[2].request == R"({"name":"a__y","arguments":{"card":"***"}})");
  CHECK(calls[2].params_bytes == 43);  // the length of the text that the client sent
  for (const auto &one : w.judge.records) CHECK(one.request.find("4111") == std::string::npos);
}

TEST_CASE("a plugin that requests only calls receives only calls, and no message waits") {
  // BH_TELEMETRY_EVENTS is not set, because it would add intent records.
  CommitWorld w(BH_TELEMETRY_TEXTS | BH_TELEMETRY_COMMITS);
  w.start();
  REQUIRE(w.turn_until([&] { return w.got.size() == 1; }));
  REQUIRE(w.has_records(BH_RECORD_CALL, 1));
  CHECK(w.judge.records.size() == 1);
}

TEST_CASE("the gateway's identity is the first record and occurs once") {
  CommitWorld w(BH_TELEMETRY_EVENTS);
  w.start();
  w.client->send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  REQUIRE(w.has_records(BH_RECORD_CALL, 2));
  CHECK(w.judge.records[0].kind == BH_RECORD_IDENTITY);
  CHECK(w.judge.records[0].detail == R"({"profile":"/p.toml","user":"me"})");
  CHECK(w.of_kind(BH_RECORD_IDENTITY).size() == 1);
  // The next record describes the policies and rules that apply to later calls.
  CHECK(w.judge.records[1].kind == BH_RECORD_POLICY);
  CHECK(w.judge.records[1].detail.starts_with(R"({"generation":1,"rules":0,"digest":")"));
  CHECK(w.of_kind(BH_RECORD_POLICY).size() == 1);
}

TEST_CASE("an approval request is recorded when it is created and when it is resolved") {
  CommitWorld w(BH_TELEMETRY_EVENTS, BH_POLICY_DECIDES);
  w.profile.approval.api = true;
  w.judge.judge = [](const FakeJudge::Asked &, bh_verdict *out) -> bh_status {
    out->verdict = BH_VERDICT_ASK;
    out->rule = bh::str("r1");
    return BH_OK;
  };
  w.start();
  w.call("1", "a__x");
  REQUIRE(w.has_records(BH_RECORD_APPROVAL, 1));
  const auto asked = w.of_kind(BH_RECORD_APPROVAL)[0];
  CHECK(asked.server == "a");
  CHECK(asked.name == "x");
  CHECK(asked.rule == "r1");
  CHECK(asked.detail.find(R"("status":"pending")") != std::string::npos);
  const auto list = w.host->approvals(0);
  REQUIRE(list.questions.size() == 1);
  CHECK(asked.detail.find(list.questions[0].id) != std::string::npos);
  ApprovalAnswer answer;
  answer.id = list.questions[0].id;
  answer.allow = true;
  REQUIRE(w.host->answer_approval(answer).has_value());
  REQUIRE(w.has_records(BH_RECORD_APPROVAL, 2));
  const auto ended = w.of_kind(BH_RECORD_APPROVAL)[1];
  CHECK(ended.detail.find(R"("status":"approved")") != std::string::npos);
  CHECK(ended.detail.find(R"("surface":"api","scope":"once")") != std::string::npos);
  w.answer("{}");
  REQUIRE(w.has_records(BH_RECORD_CALL, 2));
  const auto record = w.of_kind(BH_RECORD_CALL)[1];
  CHECK(record.action == BH_VERDICT_ASK);
  CHECK(record.rule == "r1");
  CHECK(record.outcome == BH_OUTCOME_OK);
}
