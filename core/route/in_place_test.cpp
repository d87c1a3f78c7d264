// Tests the router with a tools plugin and a policy whose decisions are delayed: lists that fail or
// change, subscriptions, and invalid results.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "route/in_place_world.hpp"

using namespace bulkhead;

TEST_CASE("if a list cannot be read again, the old list is kept and the error is reported") {
  Alone w;
  w.start();
  w.tools.fails = true;
  w.router->parts().servers.tools.list_changed(*w.upstream, BH_LIST_TOOLS);
  w.list();
  CHECK(w.has("t__x"));
  CHECK(w.upstream->status().tools == 2);
  CHECK(w.upstream->status().reason.find("the folder has gone") != std::string::npos);
  CHECK(w.log.find("the folder has gone") != std::string::npos);
  w.tools.list = R"([{"name":"z"}])";
  w.tools.fails = false;
  w.router->parts().servers.tools.list_changed(*w.upstream, BH_LIST_TOOLS);
  w.list();
  CHECK(w.has("t__z"));
  CHECK_FALSE(w.has("t__x"));
  CHECK(w.upstream->status().reason.empty());
}

TEST_CASE("the policy's pending decisions are abandoned when their list changes") {
  Alone w;
  w.start();
  w.router->parts().policy.gate.use(&policy_table, &w.asked);
  w.list();
  REQUIRE(w.asked.size() == 2);
  w.router->parts().policy.lists.answered(w.asked[0], true);
  SECTION("the list has changed") {
    w.tools.list = R"([{"name":"z"}])";
    w.router->parts().servers.tools.list_changed(*w.upstream, BH_LIST_TOOLS);
  }
  SECTION("the rules have changed") {
    w.router->parts().servers.reload.policy_changed();
  }
  SECTION("the gateway shuts down") {
    w.router->parts().clients.sessions.end_all("the end");
    w.router->close_lanes();
  }
  CHECK(w.unanswered == std::vector<std::uint64_t>{w.asked[1]});
}

TEST_CASE("a plugin that does not support subscriptions receives no subscribe request") {
  Alone w;
  w.start();
  w.watch("subscribe", "bulkhead://t/note:///1");
  CHECK(w.has("does not support resource subscriptions"));
  CHECK(w.tools.calls.empty());
}

TEST_CASE(
    "a plugin receives a subscription once, and its client receives updates until it "
    "unsubscribes") {
  Alone w;
  w.tools.features = BH_TOOLS_SUBSCRIBE;
  w.start();
  const std::string uri = "bulkhead://t/note:///1";
  w.watch("subscribe", uri);
  REQUIRE(w.tools.calls == std::vector<std::string>{"resources/subscribe note:///1"});
  CHECK(w.got.empty());
  w.complete();
  CHECK(w.has(R"("result":{})"));
  w.got.clear();
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///2");
  CHECK(w.got.empty());
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1");
  CHECK(w.has(R"("method":"notifications/resources/updated","params":{"uri":")" + uri + "\"}"));
  w.watch("subscribe", uri);  // the plugin has already accepted this subscription
  CHECK(w.has(R"("result":{})"));
  CHECK(w.tools.calls.size() == 1);
  w.watch("unsubscribe", uri);
  CHECK(w.tools.calls.back() == "resources/unsubscribe note:///1");
  w.complete();
  w.got.clear();
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1");
  CHECK(w.got.empty());
}

TEST_CASE("a subscription that the plugin refuses has no effect") {
  Alone w;
  w.tools.features = BH_TOOLS_SUBSCRIBE;
  w.tools.subscribe_status = BH_E_LIMIT;
  w.start();
  w.watch("subscribe", "bulkhead://t/note:///1");
  CHECK(w.has("it may not be watched"));
  w.got.clear();
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1");
  CHECK(w.got.empty());
}

TEST_CASE(
    "a restarted plugin receives its subscriptions again, and they remain even if it refuses "
    "them") {
  Alone w;
  w.tools.features = BH_TOOLS_SUBSCRIBE;
  w.start();
  w.watch("subscribe", "bulkhead://t/note:///1");
  w.complete();
  w.router->parts().servers.tools.began(*w.upstream);
  REQUIRE(w.tools.calls.size() == 2);
  CHECK(w.tools.calls[1] == "resources/subscribe note:///1");
  w.got.clear();
  SECTION("it agrees") {
    w.complete();
  }
  SECTION("it refuses") {
    w.router->parts().servers.tools.refused(w.tools.ids.back(), {BH_E_LIMIT, "too many"});
  }
  SECTION("it does not respond") {}
  CHECK(w.got.empty());
  w.router->parts().servers.tools.resource_updated(*w.upstream, "note:///1");
  CHECK(w.has("resources/updated"));
}

TEST_CASE("a subscription is removed when its client disconnects") {
  Alone w;
  w.tools.features = BH_TOOLS_SUBSCRIBE;
  w.start();
  w.watch("subscribe", "bulkhead://t/note:///1");
  w.complete();
  w.router->parts().clients.sessions.close(w.session, BH_SESSION_GONE);
  CHECK(w.tools.calls.back() == "resources/unsubscribe note:///1");
}

TEST_CASE(
    "a result must be a single JSON object that cannot add members to the enclosing message") {
  Alone w;
  w.start();
  const auto call = [&](std::string_view json) {
    w.ask(R"({"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t__x"}})");
    w.router->parts().servers.tools.complete(w.tools.ids.back(), BH_RESULT_OK, json);
  };
  for (const std::string_view good : {R"({"content":[]})", "{\"content\":[]} \r\n"}) {
    INFO(good);
    call(good);
    CHECK(w.has(R"("id":3)"));
    CHECK(w.has(R"("content":[])"));
  }
  for (const std::string_view bad :
       {"", "[]", "7", "{", R"({"a":1},"id":4)", R"({"a":1},"result":{"b":2})",
        R"({"a":1},"extra":{})", R"({"a":1}})", R"( {"a":1})"}) {
    INFO(bad);
    call(bad);
    CHECK(w.has(R"("id":3)"));
    CHECK(w.has("returned an invalid response"));
  }
}
