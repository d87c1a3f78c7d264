// Tests the requests that are the same in all protocol generations: which of them list items, call
// a server or are rejected, and the checks before a call begins.
#include "route/client_requests.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "route/request_world.hpp"

using namespace bulkhead;

namespace {

bool starts(const std::string &text, const std::string &with) {
  return text.compare(0, with.size(), with) == 0;
}

const std::string call_of_t = R"({"name":"s__t","arguments":{"region":"us"}})";

}  // namespace

TEST_CASE("requests are answered with a list, become calls, or are rejected, by their method") {
  RequestWorld w;
  for (const std::string list :
       {"tools/list", "prompts/list", "resources/list", "resources/templates/list"}) {
    INFO(list);
    CHECK(w.ask(list, "{}") == "result");
  }
  const std::string ref = R"({"ref":{"type":"ref/prompt","name":"s__p"},)"
                          R"("argument":{"name":"a","value":"b"}})";
  const std::vector<std::pair<std::string, std::string>> sent = {
      {"tools/call", call_of_t},
      {"prompts/get", R"({"name":"s__p"})"},
      {"completion/complete", ref},
  };
  for (const auto &[method, params] : sent) {
    INFO(method);
    CHECK(w.ask(method, params) == "call");
    CHECK(mcp::to_string(w.last_call().method) == method);
    CHECK(w.last_call().stage == Stage::at_server);
  }
  CHECK(w.lane.sent == sent.size());
  for (const std::string other : {"initialize", "ping", "logging/setLevel", "roots/list", "odd"}) {
    INFO(other);
    CHECK(w.ask(other, "{}") == "-32601 0 \"Method not found: " + other + "\"");
  }
  const std::string longest(100, 'm');
  CHECK(w.ask(longest + "more", "{}") == "-32601 0 \"Method not found: " + longest + "\"");
  CHECK(w.lane.sent == sent.size());
}

TEST_CASE("methods that the profile does not expose are rejected before they are handled") {
  RequestWorld w;
  const auto offers = [&w](const std::string &method) {
    w.client.sent.clear();
    Scanned message(R"({"jsonrpc":"2.0","id":"c","method":")" + method + R"(","params":{}})");
    Incoming incoming{{w.session.handle, 7, 0}, message.get(), 1};
    if (w.requests.offers(incoming)) return std::string("offered");
    return w.answered();
  };
  CHECK(offers("tools/call") == "offered");
  CHECK(offers("completion/complete") == "offered");
  w.profile.expose = {};
  w.profile.expose.tools = w.profile.expose.completions = w.profile.expose.subscribe = false;
  for (const std::string method :
       {"tools/list", "tools/call", "completion/complete", "resources/subscribe"}) {
    INFO(method);
    CHECK(offers(method) ==
          "-32601 0 \"Method not found: " + method + " is not offered by this gateway's profile\"");
  }
  CHECK(offers("prompts/get") == "offered");
  CHECK(offers("resources/read") == "offered");
}

TEST_CASE("a call without a valid target is rejected and is not counted") {
  RequestWorld w;
  CHECK(starts(w.ask("tools/call", R"({"name":"t"})"), "-32602 0"));
  CHECK(starts(w.ask("tools/call", R"({"name":"s__none"})"), "-32601 0"));
  CHECK(starts(w.ask("tools/call", "{}"), "-32602 0"));
  CHECK(starts(w.ask("prompts/get", R"({"name":"s__none"})"), "-32602 0"));
  CHECK(starts(w.ask("resources/read", "{}"), "-32602 0"));
  CHECK(w.counters.calls == 0);
  CHECK(w.lane.sent == 0);
}

TEST_CASE(
    "headers that contradict the arguments reject a call; without headers, none are required") {
  RequestWorld w;
  bh_header header{bh::str("Mcp-Param-Region"), bh::str("eu")};
  const WireHeaders headers(&header, 1), none;
  CHECK(starts(w.ask("tools/call", call_of_t, &headers), "-32020 400"));
  CHECK(starts(w.ask("tools/call", call_of_t, &none), "-32020 400"));
  CHECK(w.counters.calls == 0);
  header.value = bh::str("us");
  CHECK(w.ask("tools/call", call_of_t, &headers) == "call");
  CHECK(w.ask("tools/call", call_of_t) == "call");
}

TEST_CASE("a subscription is rejected at the limit and by servers that have none") {
  RequestWorld w;
  w.profile.limits.subscriptions_per_session = 1;
  w.lane.queues = true;
  const std::string params = R"({"uri":")" + w.uri() + "\"}";
  CHECK(w.ask("resources/subscribe", params) == "call");
  w.session.subscriptions["\"another\""] = {};
  const std::string full = w.ask("resources/subscribe", params);
  CHECK(starts(full, "-32000 0"));
  CHECK(full.find("limits.subscriptions_per_session = 1") != std::string::npos);
  CHECK(w.ask("resources/unsubscribe", params) != full);  // not limited
  w.lane.set_caps({.resources = true});
  CHECK(starts(w.ask("resources/subscribe", params), "-32601 0"));
  CHECK(starts(w.ask("resources/unsubscribe", params), "-32601 0"));
}

TEST_CASE("a state is sent only to the server that issued it") {
  RequestWorld w;
  w.lane.queues = true;
  const RequestState other{"other", "\"secret\""}, own{"s", "\"mine\""};
  CHECK(starts(w.ask("tools/call", call_of_t, nullptr, &other), "-32602 0"));
  CHECK(w.counters.calls == 0);
  CHECK(w.ask("tools/call", call_of_t, nullptr, &own) == "call");
  REQUIRE(w.last_call().parked != nullptr);
  CHECK(w.last_call().parked->state == "\"mine\"");
  CHECK(w.ask("tools/call", call_of_t) == "call");
  CHECK(w.last_call().parked->state.empty());
}
