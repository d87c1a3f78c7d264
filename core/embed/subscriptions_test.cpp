// Tests subscriptions: which requests the upstream receives, which clients are notified, and which
// state remains after a session or server has been closed.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "embed/policy_world.hpp"

using namespace bulkhead;

namespace {

const char *const composed = "bulkhead://a/m://1";

std::string request(const std::string &id, const std::string &method, const std::string &uri) {
  return R"({"jsonrpc":"2.0","id":)" + id + R"(,"method":"resources/)" + method +
         R"(","params":{"uri":")" + uri + R"("}})";
}

std::string updated(const std::string &uri) {
  return R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":")" + uri +
         R"("}})";
}

void offer_subscriptions(World &w) {
  w.up.capabilities["a"] = R"({"tools":{},"resources":{"subscribe":true}})";
}

// Returns the requests with this method that "a" has received on its newest connection. If
// `every_lane` is set, also includes those that "a" has received on other connections.
std::vector<std::string> sent(World &w, const std::string &method, bool every_lane = false) {
  std::vector<std::string> found;
  for (const FakeLane &lane : w.up.lanes) {
    if (lane.server != "a" || (!every_lane && lane.handle != w.up.lane("a").handle)) continue;
    for (const std::string &m : lane.sent) {
      if (m.find("\"resources/" + method + "\"") != std::string::npos) found.push_back(m);
    }
  }
  return found;
}

void answer(World &w, const std::string &message, const std::string &what = R"("result":{})") {
  w.up.send("a", R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(message) + "," + what + "}");
}

constexpr const char *refusal = R"("error":{"code":-32002,"message":"no such resource"})";

}  // namespace

TEST_CASE("no client is notified of a subscription that the upstream has not accepted") {
  World w;
  offer_subscriptions(w);
  w.start();
  Client one(*w.host), two(*w.host), three(*w.host);
  one.end->send(request("1", "subscribe", composed));
  two.end->send(request("2", "subscribe", composed));
  CHECK(two.got.empty());
  const std::vector<std::string> asked = sent(w, "subscribe");
  REQUIRE(asked.size() == 2);
  SECTION("the upstream refuses") {
    answer(w, asked[0], refusal);
    answer(w, asked[1], refusal);
    CHECK(one.has(R"("id":1,"error":{"code":-32002)"));
    CHECK(two.has(R"("id":2,"error":{"code":-32002)"));
    CHECK(sent(w, "unsubscribe").empty());
    three.end->send(request("3", "subscribe", composed));
    CHECK(sent(w, "subscribe").size() == 3);
  }
  SECTION("the first client cancels, the second one does not") {
    one.end->send(
        R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
    CHECK(sent(w, "unsubscribe").empty());
    answer(w, asked[1]);
    CHECK(two.has(R"("id":2,"result":{})"));
    w.up.send("a", updated("m://1"));
    CHECK(two.has("resources/updated"));
    CHECK_FALSE(one.has("resources/updated"));
    three.end->send(request("3", "subscribe", composed));
    CHECK(three.has(R"("id":3,"result":{})"));
    CHECK(sent(w, "subscribe").size() == 2);
  }
  SECTION(
      "both clients cancel: the gateway unsubscribes, because the upstream may have subscribed") {
    for (Client *c : {&one, &two}) {
      c->end->send(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" +
                   std::string(c == &one ? "1" : "2") + "}}");
    }
    CHECK(sent(w, "unsubscribe").size() == 1);
  }
  SECTION("the upstream accepts once") {
    answer(w, asked[0]);
    one.end.reset();
    CHECK(sent(w, "unsubscribe").empty());
    answer(w, asked[1], refusal);
    // No clients are left, so the gateway cancels the accepted subscription.
    CHECK(sent(w, "unsubscribe").size() == 1);
  }
}

TEST_CASE("equivalent forms of a URI share one subscription") {
  World w;
  offer_subscriptions(w);
  w.start();
  Client c(*w.host);
  c.end->send(request("1", "subscribe", composed));
  answer(w, w.up.last("a"));
  c.end->send(request("2", "subscribe", R"(bulkhead://a/m:\/\/1)"));
  CHECK(c.has(R"("id":2,"result":{})"));
  c.got.clear();
  w.up.send("a", updated("m://1"));
  CHECK(c.got.size() == 1);
  CHECK(c.has(R"("uri":"bulkhead://a/m:\/\/1")"));
  c.end->send(request("3", "unsubscribe", R"(bulkhead:\/\/a/m://1)"));
  REQUIRE(sent(w, "unsubscribe").size() == 1);
  answer(w, w.up.last("a"));
  CHECK(c.has(R"("id":3,"result":{})"));
  c.got.clear();
  w.up.send("a", updated("m://1"));
  CHECK(c.got.empty());
  c.end.reset();
  CHECK(sent(w, "unsubscribe").size() == 1);
}

TEST_CASE("an update of a sub-resource is reported to subscribers of its parent") {
  World w;
  offer_subscriptions(w);
  w.start();
  Client c(*w.host);
  for (const char *uri : {"f://d", "f://d/e", "f://d-x", "f://d/e/g", "f://d0"}) {
    c.end->send(request("1", "subscribe", "bulkhead://a/" + std::string(uri)));
    answer(w, w.up.last("a"));
  }
  c.got.clear();
  w.up.send("a", updated("f://d/e/f"));
  // One notification each for "f://d" and "f://d/e".
  CHECK(c.got.size() == 2);
  CHECK(std::count(c.got.begin(), c.got.end(), updated("bulkhead://a/f://d/e/f")) == 2);
  c.got.clear();
  w.up.send("a", updated("f://d0/1"));
  CHECK(c.got.size() == 1);
  w.up.send("a", updated("f://"));
  CHECK(c.got.size() == 1);
}

TEST_CASE("a client's notification callback may unsubscribe this client and others") {
  World w;
  offer_subscriptions(w);
  w.start();
  Client one(*w.host), two(*w.host);
  for (const char *uri : {"f://d", "f://d/e"}) {
    for (Client *c : {&one, &two}) {
      const std::size_t before = sent(w, "subscribe").size();
      c->end->send(request("1", "subscribe", "bulkhead://a/" + std::string(uri)));
      if (sent(w, "subscribe").size() != before) answer(w, w.up.last("a"));
    }
  }
  one.got.clear();
  one.on_message = [&] {
    if (!one.has("resources/updated")) return;
    one.on_message = nullptr;
    for (Client *c : {&one, &two}) {
      c->end->send(request("2", "unsubscribe", "bulkhead://a/f://d"));
      c->end->send(request("3", "unsubscribe", "bulkhead://a/f://d/e"));
    }
  };
  w.up.send("a", updated("f://d/e"));
  CHECK(sent(w, "unsubscribe").size() == 2);
  one.got.clear();
  two.got.clear();
  w.up.send("a", updated("f://d/e"));
  CHECK_FALSE(one.has("resources/updated"));
  CHECK_FALSE(two.has("resources/updated"));
}

TEST_CASE("accepted subscriptions of a lost connection are renewed") {
  World w;
  offer_subscriptions(w);
  w.start();
  Client one(*w.host), two(*w.host);
  one.end->send(request("1", "subscribe", "bulkhead://a/m://1"));
  answer(w, w.up.last("a"));
  two.end->send(request("1", "subscribe", "bulkhead://a/m://2"));
  w.up.fall("a", "killed by the test");
  CHECK(two.has("killed by the test"));
  REQUIRE(w.turn_until([&] { return sent(w, "subscribe").size() == 1; }));
  CHECK(sent(w, "subscribe")[0].find(R"("uri":"m://1")") != std::string::npos);
}

TEST_CASE("a subscription with a delayed verdict is sent on the current lane, if there is one") {
  PolicyWorld w(BH_POLICY_DECIDES);
  offer_subscriptions(w);
  w.profile.limits.policy_timeout_ms = 60'000;
  w.profile.limits.idle_view_ms = 30'000;
  w.start();
  RawClient g(*w.host);
  SECTION("its server is available") {
    g.initialize("{}");
    g.deliver(request("1", "subscribe", composed));
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    REQUIRE(w.turn_until([&] { return sent(w, "subscribe").size() == 1; }));
    w.answer("{}");
    CHECK(g.has(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  }
  SECTION("its server was removed") {
    g.initialize("{}");
    g.deliver(request("1", "subscribe", composed));
    w.profile.servers = {server("b")};
    REQUIRE(w.host->apply(w.profile).has_value());
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    REQUIRE(
        w.turn_until([&] { return g.has(R"("id":1)") || !sent(w, "subscribe", true).empty(); }));
    CHECK(g.has("send it again"));
    CHECK(sent(w, "subscribe", true).empty());
    REQUIRE(w.turn_until([&] { return w.host->drained(); }));
  }
  SECTION("the session has been initialized again and uses other connections") {
    g.initialize(R"({"sampling":{}})");
    RawClient same(*w.host);  // keeps the view, and therefore its lane, open
    same.initialize(R"({"sampling":{}})");
    REQUIRE(w.turn_until([&] { return w.host->settled(); }));
    g.deliver(request("1", "subscribe", composed));
    g.initialize("{}");
    w.judge.decided(w.judge.last().number, BH_VERDICT_ALLOW);
    REQUIRE(
        w.turn_until([&] { return g.has(R"("id":1)") || !sent(w, "subscribe", true).empty(); }));
    CHECK(g.has("send it again"));
    CHECK(sent(w, "subscribe", true).empty());
  }
  // A new handshake cancels the session's remaining subscriptions.
  g.initialize(R"({"elicitation":{}})");
  w.turn(20);
}

TEST_CASE(
    "changed rules cancel subscriptions that they refuse, and no rule prevents unsubscribing") {
  PolicyWorld w(BH_POLICY_DECIDES);
  offer_subscriptions(w);
  w.profile.limits.policy_timeout_ms = 200;
  w.judge.judge = nullptr;
  w.start();
  Client c(*w.host);
  for (const char *uri : {"bulkhead://a/m://1", "bulkhead://a/m://2"}) {
    c.end->send(request("1", "subscribe", uri));
    answer(w, sent(w, "subscribe").back());
  }
  REQUIRE(sent(w, "subscribe").size() == 2);
  w.judge.asked.clear();
  const auto blocks_first = [](const FakeJudge::Asked &asked, bh_verdict *out) -> bh_status {
    out->verdict = asked.name == "m://1" ? BH_VERDICT_BLOCK : BH_VERDICT_ALLOW;
    out->rule = bh::str("r1");
    return BH_OK;
  };
  SECTION("refused immediately") {
    w.judge.judge = blocks_first;
    w.judge.changed();
    REQUIRE(w.turn_until([&] { return sent(w, "unsubscribe").size() == 1; }));
    REQUIRE(w.judge.asked.size() == 2);
    CHECK(w.judge.asked[0].method == "resources/subscribe");
    CHECK(w.judge.asked[0].event == 0);
    CHECK(w.judge.asked[0].flags == BH_REQUEST_AGAIN);
    CHECK(w.judge.asked[0].server == "a");
  }
  SECTION("refused by a delayed verdict") {
    w.judge.judge = later;
    w.judge.changed();
    REQUIRE(w.turn_until([&] { return w.judge.asked.size() == 2; }));
    CHECK(sent(w, "unsubscribe").empty());
    for (const auto &one : std::vector<FakeJudge::Asked>(w.judge.asked)) {
      w.judge.decided(one.number, one.name == "m://1" ? BH_VERDICT_BLOCK : BH_VERDICT_ALLOW);
    }
    REQUIRE(w.turn_until([&] { return sent(w, "unsubscribe").size() == 1; }));
  }
  SECTION("no verdict before the time limit") {
    w.judge.judge = later;
    w.judge.changed();
    REQUIRE(w.turn_until([&] { return sent(w, "unsubscribe").size() == 2; }));
    return;
  }
  SECTION("a client cancels a blocked subscription itself") {
    w.judge.judge = blocks_first;
    c.end->send(request("3", "unsubscribe", composed));
    CHECK(sent(w, "unsubscribe").size() == 1);
    CHECK(w.judge.asked.empty());
    return;
  }
  CHECK(sent(w, "unsubscribe")[0].find("m://1") != std::string::npos);
  c.got.clear();
  w.up.send("a", updated("m://1"));
  CHECK(c.got.empty());
  w.up.send("a", updated("m://2"));
  CHECK(c.got.size() == 1);
}

TEST_CASE("subscriptions are dropped with their lane") {
  PolicyWorld w(BH_POLICY_DECIDES);
  offer_subscriptions(w);
  w.judge.judge = nullptr;
  w.profile.limits.subscriptions_per_session = 1;
  w.start();
  RawClient g(*w.host);
  g.initialize("{}");
  g.deliver(request("1", "subscribe", composed));
  const std::string asked = w.up.last("a");
  w.profile.servers = {server("b")};
  REQUIRE(w.host->apply(w.profile).has_value());
  answer(w, asked);  // the call may still finish
  CHECK(g.has(R"({"jsonrpc":"2.0","id":1,"result":{}})"));
  REQUIRE(w.turn_until([&] { return w.host->drained(); }));
  // The cancelled subscription does not count towards the limit, so the client can subscribe to a
  // resource of another server.
  w.up.capabilities["c"] = R"({"tools":{},"resources":{"subscribe":true}})";
  w.up.tools["c"] = R"([{"name":"z"}])";
  w.profile.servers = {server("b"), server("c")};
  REQUIRE(w.host->apply(w.profile).has_value());
  REQUIRE(w.turn_until([&] { return w.host->settled(); }));
  g.deliver(request("2", "subscribe", "bulkhead://c/m://1"));
  CHECK(w.up.last("c").find("resources/subscribe") != std::string::npos);
}

TEST_CASE("a subscription without a response moves to the server's replacement") {
  World w;
  offer_subscriptions(w);
  w.start();
  Client c(*w.host);
  c.end->send(request("1", "subscribe", composed));
  const std::string asked = w.up.last("a");
  const bh_lane old = w.up.lane("a").handle;
  w.profile.servers[0].args = {"--new"};
  REQUIRE(w.host->apply(w.profile).has_value());
  REQUIRE(w.turn_until([&] { return sent(w, "subscribe").size() == 1; }));
  CHECK(w.up.lane("a").handle != old);
  w.up.send_on(old, R"({"jsonrpc":"2.0","id":)" + FakeUpstreams::id_of(asked) + R"(,"result":{}})");
  CHECK(c.has(R"("id":1,"result":{})"));
  REQUIRE(w.turn_until([&] { return w.host->drained(); }));
  c.got.clear();
  w.up.send("a", updated("m://1"));
  CHECK(c.has("resources/updated"));
  c.end.reset();
  CHECK(sent(w, "unsubscribe").size() == 1);
}
