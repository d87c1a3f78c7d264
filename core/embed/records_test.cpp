// Tests the telemetry records of client requests and notifications.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "embed/fake_policy.hpp"
#include "embed/fake_world.hpp"
#include "embed/host_impl.hpp"
#include "embed/judged_world.hpp"
#include "route/recorder.hpp"

using namespace bulkhead;

namespace {

struct RecordWorld : JudgedWorld {
  explicit RecordWorld(std::uint32_t policy_needs = 0) : JudgedWorld(policy_needs) {}
  void answer(const std::string &member, const std::string &json) {
    up.send("a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(up.last("a")) + ",\"" + member +
                     "\":" + json + "}");
  }
  // Waits until there are n records and returns them.
  const std::vector<FakeJudge::Kept> &records(std::size_t n) {
    turn_until([&] { return judge.records.size() >= n; });
    REQUIRE(judge.records.size() == n);
    return judge.records;
  }
};

constexpr std::uint32_t decides = BH_POLICY_DECIDES | BH_POLICY_READS_ARGUMENTS;
constexpr const char *traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

}  // namespace

TEST_CASE("each request and notification has one record") {
  RecordWorld w;
  w.start();
  Client c(*w.host);
  c.end->send(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
  c.end->send(list_tools);
  c.end->send(R"({"jsonrpc":"2.0","id":2,"method":"resources/list","params":{}})");
  c.call("3", "a__x", R"(,"arguments":{"n":1})");
  w.answer("result", R"({"content":[]})");
  c.call("\"four\"", "a__y");
  w.answer("error", R"({"code":-32000,"message":"no"})");
  c.call("5", "nowhere");
  c.end->send(R"({"jsonrpc":"2.0","id":6,"method":"no/such"})");
  const auto &r = w.records(8);

  CHECK(r[0].method == "initialize");
  CHECK(r[0].request_id == "\"i\"");
  CHECK(r[0].server.empty());
  CHECK(r[0].outcome == BH_OUTCOME_OK);
  CHECK(r[0].request.starts_with(R"({"protocolVersion")"));
  CHECK(r[0].params_bytes == r[0].request.size());
  CHECK(r[0].response.starts_with(R"({"protocolVersion")"));
  CHECK(r[0].result_bytes == r[0].response.size());

  CHECK(r[1].method == "notifications/initialized");
  CHECK(r[1].flags == BH_RECORD_NOTIFICATION);
  CHECK(r[1].request_id.empty());
  CHECK(r[1].response.empty());

  CHECK(r[2].method == "tools/list");
  CHECK(r[2].params_bytes == 0);
  CHECK(r[2].response.starts_with(R"({"tools":[{"name":"a__x")"));
  CHECK(r[2].response.ends_with("]}"));
  CHECK(r[2].result_bytes == r[2].response.size());
  CHECK(r[3].method == "resources/list");

  CHECK(r[4].method == "tools/call");
  CHECK(r[4].server == "a");
  CHECK(r[4].name == "x");
  CHECK(r[4].request == R"({"name":"a__x","arguments":{"n":1}})");
  CHECK(r[4].response == R"({"content":[]})");
  CHECK(r[4].result_bytes == 14);
  CHECK(r[4].action == 0);

  CHECK(r[5].request_id == "\"four\"");
  CHECK(r[5].outcome == BH_OUTCOME_ERROR);
  CHECK(r[5].response == R"({"code":-32000,"message":"no"})");
  CHECK(r[5].error == "no");  // only the error's message; `response` contains the entire error

  CHECK(r[6].method == "tools/call");
  CHECK(r[6].server.empty());
  CHECK(r[6].name == "nowhere");
  CHECK(r[6].outcome == BH_OUTCOME_ERROR);
  CHECK(r[7].method == "no/such");
  for (std::size_t i = 1; i < r.size(); ++i) CHECK(r[i].number == r[i - 1].number + 1);
  CHECK(r[0].trace_id.size() == 32);
  CHECK(r[7].trace_id == r[0].trace_id);
}

TEST_CASE("records and status contain the name that each client claims, truncated or unchanged") {
  RecordWorld w;
  w.start();
  Client first(*w.host, "{}", "2025-06-18", "Claude Code");
  Client second(*w.host, "{}", "2025-06-18",
                R"(a\u001b[2J\nb\ud800\u202e)" + std::string(10'000, 'x'));
  Client third(*w.host, "{}", "2025-06-18", "");
  for (Client *c : {&first, &second, &third}) {
    c->call("1", "a__x");
    w.answer("result", "{}");
  }
  const std::string hostile = "a\x1b[2J\nb\xEF\xBF\xBD\xE2\x80\xAE" + std::string(128 - 13, 'x');
  std::vector<std::string> names;
  for (const auto &one : w.records(6)) {
    if (one.method == "tools/call") names.push_back(one.claimed_name);
  }
  CHECK(names == std::vector<std::string>{"Claude Code", hostile, ""});
  // The record of initialize, in which the client sends its name.
  CHECK(w.records(6)[0].claimed_name == "Claude Code");
  std::vector<std::string> listed;
  for (const ClientStatus &one : w.host->status().clients) {
    CHECK(one.sessions == 1);
    CHECK(one.calls == 1);
    listed.push_back(one.claimed_name);
  }
  std::sort(names.begin(), names.end());
  std::sort(listed.begin(), listed.end());
  CHECK(listed == names);
}

TEST_CASE("status groups sessions by client name, up to a limit") {
  RecordWorld w;
  w.start();
  std::vector<std::unique_ptr<Client>> clients;
  for (std::size_t i = 0; i < ClientStatus::max_listed + 10; ++i) {
    const std::string name = "n" + std::to_string(i / 2);
    clients.push_back(std::make_unique<Client>(*w.host, "{}", "2025-06-18", name));
  }
  HostStatus status = w.host->status();
  REQUIRE(status.clients.size() == (ClientStatus::max_listed + 10) / 2);
  for (const ClientStatus &one : status.clients) CHECK(one.sessions == 2);
  for (std::size_t i = 0; i < ClientStatus::max_listed; ++i) {
    const std::string name = "m" + std::to_string(i);
    clients.push_back(std::make_unique<Client>(*w.host, "{}", "2025-06-18", name));
  }
  status = w.host->status();
  CHECK(status.clients.size() == ClientStatus::max_listed);
  CHECK(status.sessions == clients.size());
}

TEST_CASE("a record has the trace of its request, or else of its session") {
  RecordWorld w;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", R"(,"_meta":{"traceparent":")" + std::string(traceparent) + "\"}");
  w.answer("result", "{}");
  c.call("2", "a__x", R"(,"_meta":{"traceparent":"00-zz"})");
  w.answer("result", "{}");
  const auto &r = w.records(3);
  CHECK(r[1].trace_id == "4bf92f3577b34da6a3ce929d0e0e4736");
  CHECK(r[2].trace_id == r[0].trace_id);
  Client other(*w.host);
  CHECK(w.records(4)[3].trace_id != r[0].trace_id);
}

TEST_CASE("traceparent is validated") {
  CHECK(trace_of(traceparent) == "4bf92f3577b34da6a3ce929d0e0e4736");
  CHECK(trace_of(std::string("cc") + (traceparent + 2) + "-more").size() == 32);
  CHECK(trace_of("").empty());
  CHECK(trace_of(std::string("ff") + (traceparent + 2)).empty());
  CHECK(trace_of("00-00000000000000000000000000000000-00f067aa0ba902b7-01").empty());
  CHECK(trace_of("00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01").empty());
  CHECK(trace_of(std::string(traceparent) + "x").empty());
}

TEST_CASE("if no plugin requests texts, only their lengths are kept") {
  RecordWorld w;
  w.judge.telemetry_needs = 0;
  w.start();
  Client c(*w.host);
  c.call("1", "a__x", R"(,"arguments":{"n":1})");
  w.answer("result", R"({"a":1})");
  const auto &r = w.records(2);
  CHECK(r[1].request.empty());
  CHECK(r[1].response.empty());
  CHECK(r[1].params_bytes == 35);
  CHECK(r[1].result_bytes == 7);
  CHECK(r[1].flags == 0);
}

TEST_CASE(
    "texts are truncated at a character boundary, and records contain their original lengths") {
  RecordWorld w;
  w.start();
  Client c(*w.host);
  std::string large;
  while (large.size() < (1u << 20)) large += "\xE2\x82\xAC";  // three bytes per character
  c.call("1", "a__x", R"(,"arguments":{"t":")" + large + "\"}");
  w.answer("result", R"({"t":")" + large + "\"}");
  const auto &r = w.records(2);
  CHECK(r[1].flags == (BH_RECORD_REQUEST_CUT | BH_RECORD_RESPONSE_CUT));
  CHECK(r[1].request.size() <= BH_RECORD_TEXT_BYTES);
  CHECK(r[1].request.size() > BH_RECORD_TEXT_BYTES - 3);
  CHECK(mcp::valid_json(r[1].request + "\"}}"));
  CHECK(r[1].params_bytes == large.size() + 36);
  CHECK(r[1].result_bytes == large.size() + 8);
}

TEST_CASE(
    "data that a rule removes from a call is not recorded, even if the call is rejected "
    "afterwards") {
  RecordWorld w(decides);
  w.profile.pins.mode = PinRules::Mode::enforce;
  w.judge.telemetry_needs = BH_TELEMETRY_TEXTS | BH_TELEMETRY_REJECTED;
  HostOptions options;
  options.on_pins = [](const std::vector<PinNews> &) {};
  w.start(std::move(options));
  Client c(*w.host);
  w.judge.judge = [](const FakeJudge::Asked &, bh_verdict *) { return bh_status{BH_PENDING}; };
  c.call("1", "a__x", R"(,"arguments":{"secret":"canary"})");
  Profile next = w.profile;  // pins a different definition
  ToolPin &pin = next.pinned.emplace_back();
  pin.server = "a";
  pin.tool = "x";
  pin.hash = std::string(32, '0');
  REQUIRE(w.host->apply(next).has_value());
  w.judge.decided(w.judge.last().number, BH_VERDICT_REWRITE, R"({"n":7})");
  const auto &r = w.records(2);
  CHECK(r[1].rule == "tool-pin");
  CHECK(r[1].request == R"({"name":"a__x","arguments":{"redacted_by_policy":true}})");
}

TEST_CASE("a rejected call is recorded without its arguments") {
  RecordWorld w(decides);
  w.start();
  Client c(*w.host);
  w.judge.judge = [](const FakeJudge::Asked &, bh_verdict *out) -> bh_status {
    out->verdict = BH_VERDICT_BLOCK;
    out->rule = bh::str("r9");
    out->reason = bh::str("because");
    return BH_OK;
  };
  SECTION("small") {
    c.call("1", "a__x", R"(,"arguments":{"password":"p"},"_meta":{"k":1})");
    CHECK(w.records(2)[1].request ==
          R"({"name":"a__x","arguments":{"redacted_by_policy":true},"_meta":{"k":1}})");
  }
  SECTION("a telemetry plugin requests the arguments") {
    w.judge.telemetry_needs = BH_TELEMETRY_TEXTS | BH_TELEMETRY_REJECTED;
    c.call("1", "a__x", R"(,"arguments":{"path":"/etc"},"task":{"ttl":5})");
    const auto &r = w.records(2);
    CHECK(r[1].request == R"({"name":"a__x","arguments":{"path":"/etc"},"task":{"ttl":5}})");
    CHECK(r[1].flags == BH_RECORD_NOT_SENT);
    CHECK(r[1].rule == "r9");
  }
  SECTION("arguments larger than a record's text") {
    c.call("1", "a__x", R"(,"arguments":{"t":")" + std::string(1u << 20, 'p') + "\"}");
    CHECK(w.records(2)[1].request == R"({"name":"a__x","arguments":{"redacted_by_policy":true}})");
  }
  SECTION("rejected by a delayed verdict") {
    w.judge.judge = [](const FakeJudge::Asked &, bh_verdict *) { return bh_status{BH_PENDING}; };
    c.call("1", "a__x", R"(,"arguments":{"password":"p"})");
    w.judge.decided(w.judge.last().number, BH_VERDICT_BLOCK);
    const auto &r = w.records(2);
    CHECK(r[1].request.find("password") == std::string::npos);
    CHECK(r[1].rule == "r1");
    return;
  }
  const auto &r = w.judge.records[1];
  CHECK(r.outcome == BH_OUTCOME_REFUSED);
  CHECK(r.action == BH_VERDICT_BLOCK);
  CHECK(r.rule == "r9");
  CHECK(r.reason == "because");
}

TEST_CASE("a policy's verdict on an allowed call is also recorded") {
  RecordWorld w(decides);
  w.start();
  Client c(*w.host);
  w.judge.judge = [](const FakeJudge::Asked &asked, bh_verdict *out) -> bh_status {
    out->verdict = asked.name == "x" ? BH_VERDICT_ALLOW : BH_VERDICT_ASK;
    out->rule = bh::str("r2");
    return BH_OK;
  };
  c.call("1", "a__x");
  w.answer("result", "{}");
  c.call("2", "a__y");
  const auto &r = w.records(3);
  CHECK(r[1].action == BH_VERDICT_ALLOW);
  CHECK(r[1].rule == "r2");
  CHECK(r[2].action == BH_VERDICT_ASK);
  CHECK(r[2].outcome == BH_OUTCOME_REFUSED);
}

TEST_CASE("a result that a policy withholds or replaces is not recorded") {
  RecordWorld w(BH_POLICY_READS_RESULTS);
  w.start();
  Client c(*w.host);
  w.judge.judge = [](const FakeJudge::Asked &asked, bh_verdict *out) -> bh_status {
    out->verdict = asked.name == "x" ? BH_VERDICT_BLOCK : BH_VERDICT_REWRITE;
    out->rule = bh::str("r3");
    out->arguments = bh::str(R"({"public":1})");
    return BH_OK;
  };
  c.call("1", "a__x", R"(,"arguments":{"n":1})");
  w.answer("result", R"({"secret":1})");
  c.call("2", "a__y");
  w.answer("result", R"({"secret":1})");
  const auto &r = w.records(3);
  CHECK(r[1].outcome == BH_OUTCOME_REFUSED);
  CHECK(r[1].response.find("secret") == std::string::npos);
  CHECK(r[1].request.find(R"({"n":1})") != std::string::npos);  // the arguments were allowed
  CHECK(r[2].response == R"({"public":1})");
  CHECK(r[2].action == BH_VERDICT_REWRITE);
}

TEST_CASE("calls are rejected when the record queue is full if a plugin requires this") {
  RecordWorld w;
  w.judge.takes = false;
  w.judge.telemetry_needs = BH_TELEMETRY_BLOCKS;
  w.start();
  Client c(*w.host);
  c.call("0", "a__x");
  for (std::size_t i = 0; i < Recorder::max_waiting + 10; ++i) {
    c.end->send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  }
  CHECK(c.has("cannot record calls"));
  // The in-flight call still has its reserved slot in the queue.
  w.answer("result", "{}");
  const auto counter = [&](std::string_view name) -> std::uint64_t {
    for (const auto &[key, value] : w.host->status().counters) {
      if (key == name) return value;
    }
    return 0;
  };
  CHECK(counter("dropped_records") == 0);
  CHECK(counter("refused_unrecorded") == 12);
  w.judge.takes = true;
  const auto &r = w.records(Recorder::max_waiting);
  CHECK(r.back().method == "tools/call");
  c.got.clear();
  c.end->send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  CHECK_FALSE(c.has("error"));
}

TEST_CASE(
    "if no plugin requires rejection, records are dropped and counted, and the gap is reported") {
  RecordWorld w;
  w.judge.takes = false;
  w.start();
  Client c(*w.host);
  for (std::size_t i = 0; i < Recorder::max_waiting; ++i) {
    c.end->send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  }
  w.judge.takes = true;
  const auto last = w.records(Recorder::max_waiting).back().number;
  c.end->send(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
  CHECK(w.records(Recorder::max_waiting + 1).back().number == last + 2);
}

TEST_CASE("a cancelled call is recorded") {
  RecordWorld w;
  w.start();
  {
    Client c(*w.host);
    c.call("1", "a__x");
    c.end->send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
    c.call("2", "a__x");
  }
  const auto &r = w.records(4);
  CHECK(r[1].method == "notifications/cancelled");
  CHECK(r[2].outcome == BH_OUTCOME_CANCELLED);
  CHECK(r[2].request_id == "1");
  CHECK(r[3].outcome == BH_OUTCOME_CANCELLED);
  CHECK(r[3].request_id == "2");
}
