// Tests forwarding notifications between servers and clients.
#include "route/notifications.hpp"

#include <catch2/catch.hpp>

#include "route/message_world.hpp"
#include "route/view.hpp"

using namespace bulkhead;

namespace {

struct World : MessageWorld {
  void progress(const std::string &token, const std::string &value = "0.5") {
    const Scanned m(R"({"jsonrpc":"2.0","method":"notifications/progress","params":)"
                    R"({"progressToken":)" +
                    token + R"(,"progress":)" + value + "}}");
    notifications.progress(lane, m.get());
  }
  void log_line(const std::string &level, std::uint64_t hint = 0) {
    const Scanned m(R"({"jsonrpc":"2.0","method":"notifications/message","params":{"level":")" +
                    level + R"(","data":"d"}})");
    notifications.log_line(lane, hint, m.get());
  }
  std::size_t events(const Session &s) const { return sent_to(s, BH_OUT_EVENT).size(); }
};

}  // namespace

TEST_CASE("progress reaches the client of its call with the client's token") {
  World w;
  Call &call = w.call_of(w.first);
  const std::string number = std::to_string(call.exchange->id);
  w.progress(number);  // dropped: the client has not requested progress
  CHECK(w.events(w.first) == 0);
  call.request.progress_token = "\"mine\"";
  w.progress(number);
  REQUIRE(w.events(w.first) == 1);
  CHECK(at(w.sent_to(w.first, BH_OUT_EVENT)[0], {"params", "progressToken"}) == "\"mine\"");
  CHECK(w.client.sent.back().stream == 7);
  w.progress("12345");
  w.progress("\"text\"");
  CHECK(w.events(w.first) == 1);
  CHECK(w.counters.dropped_events == 3);
}

TEST_CASE("the progress of a call increases although its server counts from the start again") {
  World w;
  Call &call = w.call_of(w.first);
  call.request.progress_token = "\"mine\"";
  call.input = std::make_unique<CallInput>();
  const std::string number = std::to_string(call.exchange->id);
  const auto forwarded = [&](const std::vector<std::string> &values) {
    std::vector<std::string> out;
    for (const std::string &value : values) {
      const std::size_t before = w.events(w.first);
      w.progress(number, value);
      if (w.events(w.first) != before) {
        out.emplace_back(at(w.sent_to(w.first, BH_OUT_EVENT).back(), {"params", "progress"}));
      }
    }
    return out;
  };
  using Values = std::vector<std::string>;
  CHECK(forwarded({"1", "2", "1.5"}) == Values{"1", "2", "1.5"});  // the call was not sent again
  const auto again = GENERATE(false, true);
  call.input->rounds = again ? 0 : 1;
  call.input->headers_renewed = again;
  CHECK(forwarded({"1", "2", "2.5", "2.5", "25e-1", "3", "-4", "3.1"}) ==
        Values{"2.5", "3", "3.1"});
  CHECK(forwarded({"\"odd\""}) == Values{"\"odd\""});
  // Another call is not affected.
  Call &other = w.call_of(w.first);
  other.request.progress_token = "1";
  other.input = std::make_unique<CallInput>();
  w.progress(std::to_string(other.exchange->id), "0.1");
  CHECK(at(w.sent_to(w.first, BH_OUT_EVENT).back(), {"params", "progress"}) == "0.1");
}

TEST_CASE("a log message is sent to the client of its call, depending on the client's log level") {
  World w;
  Call &call = w.call_of(w.first);
  w.log_line("debug");
  CHECK(w.events(w.first) == 1);  // the client has not set a log level
  w.first.log_level = parse_log_level("warning");
  w.log_line("info");
  CHECK(w.events(w.first) == 1);
  w.log_line("error", call.exchange->id);
  CHECK(w.events(w.first) == 2);
}

TEST_CASE("a log message without a known client is sent to the clients that have set a level") {
  World w;
  View view;
  view.clients = {&w.first, &w.second};
  w.lane.views = {&view};
  w.first.log_level = parse_log_level("warning");
  w.log_line("error");
  w.log_line("info");
  CHECK(w.events(w.first) == 1);
  CHECK(w.events(w.second) == 0);
  CHECK(w.counters.dropped_events == 1);
}

TEST_CASE(
    "a client that disconnects while a log message is sent to several clients receives nothing") {
  World w;
  View view;
  view.clients = {&w.first, &w.second};
  w.lane.views = {&view};
  w.first.log_level = w.second.log_level = 0;
  w.client.inside = [&] { w.sessions.erase(w.second.handle); };
  w.log_line("error");
  CHECK(w.client.sent.size() == 1);
}

TEST_CASE("an unknown notification reaches the only client for which the server is working") {
  World w;
  const Scanned m(R"({"jsonrpc":"2.0","method":"notifications/other","params":{}})");
  w.notifications.other(w.lane, 0, m.get());
  CHECK(w.client.sent.empty());
  w.call_of(w.second);
  w.notifications.other(w.lane, 0, m.get());
  CHECK(w.sent_to(w.second, BH_OUT_EVENT) == std::vector<std::string>{m.text});
  w.notifications.other(w.lane, 12345, m.get());  // dropped: it belongs to a finished call
  CHECK(w.events(w.second) == 1);
}

TEST_CASE("a policy that evaluates notifications evaluates each one before it is forwarded") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES | BH_POLICY_JUDGES_NOTIFICATIONS;
  w.policy.decides = BH_PENDING;
  w.gate.use(&policy_table, &w.policy);
  Call &call = w.call_of(w.first);
  call.request.progress_token = "1";
  w.progress(std::to_string(call.exchange->id));
  CHECK(w.events(w.first) == 0);
  w.judged.decided(w.policy.numbers.at(0), {});
  REQUIRE(w.passed_on.size() == 1);
  CHECK(w.passed_on[0].call == call.id);
  CHECK(w.passed_on[0].tool == "tool");
  CHECK(w.passed_on[0].to.stream == 7);
  const Scanned m(R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})");
  const bh_str part = bh::str(m.text);
  w.policy.decides = BH_OK;
  w.policy.verdict = BH_VERDICT_BLOCK;
  w.notifications.to_server(w.lane, w.first, m.get(), &part, 1);
  CHECK(w.lane.messages.empty());
  CHECK(w.refusals.size() == 1);
  w.policy.verdict = BH_VERDICT_ALLOW;
  w.notifications.to_server(w.lane, w.first, m.get(), &part, 1);
  CHECK(w.lane.messages == std::vector<std::string>{m.text});
}

TEST_CASE("progress that cannot be rewritten reaches no client") {
  World w;
  Call &call = w.call_of(w.first);
  call.request.progress_token = "\"mine\"";
  const std::string number = std::to_string(call.exchange->id);
  const BrokenProgress progress(number);
  w.notifications.progress(w.lane, progress.get());
  CHECK(w.client.sent.empty());
  CHECK(w.lost == 1);
  CHECK(w.counters.dropped_events == 0);
  w.progress(number);  // the next one is sent
  CHECK(w.events(w.first) == 1);
  CHECK(w.lost == 1);
}
