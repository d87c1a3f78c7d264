// Tests which clients are subscribed to a resource, and which subscribe and unsubscribe requests
// reach the server.
#include "route/subscriptions.hpp"

#include <catch2/catch.hpp>

#include "route/message_world.hpp"
#include "route/splice.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;

struct World : MessageWorld {
  // Starts a call that the policy has allowed. Returns true if the gateway responds to it.
  bool begin(Session &s, mcp::Method method, const std::string &uri, const std::string &token) {
    call = &call_of(s, method);
    call->name = uri;
    return subscriptions.begin(*call, lane, token);
  }
  bool subscribe(Session &s, const std::string &uri = "note:///1") {
    return begin(s, mcp::Method::resources_subscribe, uri, "\"" + uri + "\"");
  }
  bool unsubscribe(Session &s, const std::string &uri = "note:///1") {
    return begin(s, mcp::Method::resources_unsubscribe, uri, "\"" + uri + "\"");
  }
  bool ended(std::uint32_t outcome = BH_OUTCOME_OK) {
    return call->watches != nullptr && subscriptions.ended(*call, outcome);
  }
  std::string updated(const std::string &uri, const Session &s) {
    client.sent.clear();
    const Scanned m(R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":)"
                    R"({"uri":")" +
                    uri + "\"}}");
    subscriptions.updated(lane, m.get());
    const auto sent = sent_to(s, BH_OUT_EVENT);
    return sent.empty() ? "" : std::string(at(sent[0], {"params", "uri"}));
  }
  Call *call = nullptr;
};

}  // namespace

TEST_CASE("the server receives only the first subscribe and the last unsubscribe request") {
  World w;
  CHECK_FALSE(w.subscribe(w.first));
  // The second request is also sent, because the first one has not been accepted yet.
  CHECK_FALSE(w.subscribe(w.second));
  CHECK_FALSE(w.ended());
  CHECK(w.subscribe(w.second));
  CHECK(w.updated("note:///1", w.first) == "\"note:///1\"");
  CHECK(w.unsubscribe(w.first));
  CHECK(w.updated("note:///1", w.first).empty());
  CHECK(w.updated("note:///1", w.second) == "\"note:///1\"");
  CHECK_FALSE(w.unsubscribe(w.second));
  CHECK(w.lane.watches.empty());
  CHECK(w.first.subscriptions.empty());
  CHECK(w.changes > 0);
}

TEST_CASE("the server does not receive the URI of a resource that the client does not watch") {
  World w;
  CHECK_FALSE(w.subscribe(w.first));
  CHECK_FALSE(w.ended());
  CHECK(w.unsubscribe(w.first, "note:///secret"));
  CHECK(w.unsubscribe(w.second));  // only the first client watches it
  CHECK(w.lane.watches.size() == 1);
  CHECK(w.updated("note:///1", w.first) == "\"note:///1\"");
  CHECK_FALSE(w.unsubscribe(w.first));
  CHECK(w.unsubscribe(w.first));
}

TEST_CASE("a server without these methods learns only of changes") {
  World w;
  w.lane.lacks = {mcp::Method::resources_subscribe, mcp::Method::resources_unsubscribe};
  CHECK_FALSE(w.subscribe(w.first, "note:///1"));
  w.ended();
  CHECK_FALSE(w.subscribe(w.second, "note:///2"));
  w.ended();
  CHECK(w.unsubscribe(w.first, "note:///3"));        // no client watches it
  CHECK(w.unsubscribe(w.first, "note:///2"));        // another client watches it
  CHECK_FALSE(w.unsubscribe(w.first, "note:///1"));  // changes what the lane watches
  CHECK(w.unsubscribe(w.first, "note:///1"));
}

TEST_CASE(
    "a refused subscription is removed; if the outcome is unknown, the server receives an "
    "unsubscribe request") {
  World w;
  w.subscribe(w.first);
  SECTION("refused") {
    CHECK_FALSE(w.ended(BH_OUTCOME_ERROR));
  }
  SECTION("cancelled, or timed out: the server may have accepted it") {
    CHECK(
        w.ended(GENERATE(std::uint32_t{BH_OUTCOME_CANCELLED}, std::uint32_t{BH_OUTCOME_TIMEOUT})));
  }
  CHECK(w.lane.watches.empty());
  CHECK(w.first.subscriptions.empty());
}

TEST_CASE(
    "a refusal for one client does not remove a subscription that was accepted for another "
    "client") {
  World w;
  w.subscribe(w.first);
  Call *of_first = w.call;
  w.subscribe(w.second);
  CHECK_FALSE(w.ended());
  w.call = of_first;
  CHECK_FALSE(w.ended(BH_OUTCOME_ERROR));
  CHECK(w.updated("note:///1", w.first).empty());
  CHECK_FALSE(w.updated("note:///1", w.second).empty());
}

TEST_CASE("updates of sub-resources reach subscribers of the parent, but not of siblings") {
  World w;
  w.subscribe(w.first, "note:///a");
  w.ended();
  CHECK(w.updated("note:///a/b", w.first) == "\"bulkhead://s/note:///a/b\"");
  CHECK(w.updated("note:///ab", w.first).empty());
  CHECK(w.updated("note:///", w.first).empty());
  CHECK(w.updated("", w.first).empty());
}

TEST_CASE("subscriptions are removed when their client disconnects") {
  World w;
  w.subscribe(w.first, "note:///1");
  w.ended();
  w.subscribe(w.first, "note:///2");
  w.ended();
  w.subscribe(w.second, "note:///2");
  w.subscriptions.forget_all(w.first);
  CHECK(w.lane.quiet == Texts{R"(resources/unsubscribe {"uri":"note:///1"})"});
  CHECK(w.lane.watches.size() == 1);
  w.subscriptions.forget(w.first, "\"nothing\"");
}

TEST_CASE("subscriptions move to the lane that replaces theirs and are requested from its server") {
  World w;
  w.subscribe(w.first);
  w.ended();
  FakeLane next(w, w.upstream, 0, 0);
  w.subscriptions.move(w.first, "\"note:///1\"", &next);
  CHECK(w.lane.watches.empty());
  Subscriptions::lane_ready(next);
  CHECK(next.quiet == Texts{R"(resources/subscribe {"uri":"note:///1"})"});
  w.subscriptions.move(w.first, "\"note:///1\"", nullptr);
  CHECK(next.watches.empty());
  CHECK(w.first.subscriptions.empty());
}

TEST_CASE("subscriptions are removed when their lane is closed") {
  World w;
  w.subscribe(w.first);
  w.subscriptions.forget_lane(w.lane);
  CHECK(w.first.subscriptions.empty());
  CHECK(w.call->watches == nullptr);
  w.subscriptions.forget_lane(w.lane);
}

TEST_CASE("a client that cannot subscribe is rejected before a call begins") {
  World w;
  const auto refusal = [&](mcp::Method method) {
    return w.subscriptions.refusal(w.first, w.lane, method).error_code;
  };
  using enum mcp::Method;
  // Allowed: the server is not connected, so it might support subscriptions.
  CHECK(refusal(resources_subscribe) == 0);
  w.lane.set_state(LaneState::ready);
  CHECK(refusal(resources_subscribe) == code::method_not_found);
  ServerCaps caps;
  caps.subscribe = true;
  w.lane.set_caps(caps);
  CHECK(refusal(resources_subscribe) == 0);
  w.own_limits.subscriptions_per_session = 1;
  w.subscribe(w.first);
  CHECK(refusal(resources_subscribe) == code::timeout);
  CHECK(refusal(resources_unsubscribe) == 0);
}

TEST_CASE("subscriptions that changed rules refuse are removed") {
  World w;
  w.policy.needs = BH_POLICY_DECIDES;
  w.gate.use(&policy_table, &w.policy);
  w.subscribe(w.first);
  w.ended();
  w.subscriptions.judge_again(w.first.handle);
  CHECK(w.refusals.empty());
  w.policy.verdict = BH_VERDICT_BLOCK;
  w.subscriptions.judge_again(w.first.handle);
  REQUIRE(w.refusals.size() == 1);
  w.subscriptions.refused(w.refusals[0]);
  CHECK(w.first.subscriptions.empty());
  CHECK(w.lane.quiet == Texts{R"(resources/unsubscribe {"uri":"note:///1"})"});
  w.subscriptions.refused(w.refusals[0]);  // ignored: already removed
  CHECK(w.lane.quiet.size() == 1);
}

TEST_CASE("an update with too many edits reaches no client") {
  World w;
  CHECK_FALSE(w.subscribe(w.first));
  CHECK_FALSE(w.ended());
  const auto update = [&w](std::uint32_t members) {
    std::string text = R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":)"
                       R"({"uri":"note:///1","_meta":{"a0":0)";
    for (std::uint32_t i = 1; i <= members; ++i) {
      const std::string number = std::to_string(i);
      text += R"(,"io.modelcontextprotocol/subscriptionId":1,"a)" + number + "\":" + number;
    }
    const Scanned m(text + "}}}");
    w.client.sent.clear();
    w.subscriptions.updated(w.lane, m.get());
    return w.sent_to(w.first, BH_OUT_EVENT);
  };
  const Texts sent = update(1);
  REQUIRE(sent.size() == 1);
  CHECK(at(sent[0], {"params", "_meta"}) == R"({"a0":0,"a1":1})");
  CHECK(w.lost == 0);
  CHECK(update(Splice::max_edits).empty());
  CHECK(w.client.sent.empty());
  CHECK(w.lost == 1);
}
