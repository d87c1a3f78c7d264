// Tests the subscriptions/listen request of a lane.
#include "route/listening.hpp"

#include <catch2/catch.hpp>
#include <memory>

#include "mcp/scan.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;

struct Server : Listening::Wire {
  std::unique_ptr<Reactor> loop = *Reactor::create();
  Texts uris;
  Texts filters;
  std::vector<std::uint64_t> ends;
  std::vector<std::pair<std::uint64_t, bool>> answers;
  std::uint32_t missed = 0;
  bool sends = true;
  Listening listening{*loop, *this};

  Texts watched() const override { return uris; }
  std::uint64_t send_listen(const std::string &filter) override {
    REQUIRE(mcp::valid_json(filter));
    filters.push_back(filter);
    return sends ? filters.size() : 0;
  }
  void end_listen(std::uint64_t exchange) override { ends.push_back(exchange); }
  void changes_missed() override { ++missed; }
  void subscribed(std::uint64_t exchange, bool accepted) override {
    answers.emplace_back(exchange, accepted);
  }
  void start(bool tools = true) {
    ServerCaps caps;
    caps.tools_changed = tools;
    listening.start(caps);
  }
  bool requests(std::size_t count) {
    for (int i = 0; i < 400 && filters.size() < count; ++i) loop->poll(10);
    return filters.size() == count;
  }
  void idle(int ms = 50) {
    for (int i = 0; i < ms / 10; ++i) loop->poll(10);
  }
};

}  // namespace

TEST_CASE("only the kinds that the server announces are asked for, and nothing without any") {
  Server none;
  none.start(false);
  CHECK(none.filters.empty());
  Server s;
  ServerCaps caps;
  caps.tools_changed = caps.resources_changed = true;
  s.listening.start(caps);
  CHECK(s.filters == Texts{R"({"toolsListChanged":true,"resourcesListChanged":true})"});
}

TEST_CASE("a subscription is accepted by the acknowledgement, and the old request is closed then") {
  Server s;
  s.start();
  s.listening.acknowledged(1, R"({"toolsListChanged":true})");
  CHECK(s.missed == 0);
  s.uris = {"a:\"x\"", "b:y"};
  s.listening.subscribe(70, "a:\"x\"");
  s.listening.subscribe(71, "b:y");
  REQUIRE(s.requests(2));  // one for both
  CHECK(mcp::member(s.filters[1], "resourceSubscriptions") == R"(["a:\"x\"","b:y"])");
  CHECK(s.ends.empty());
  CHECK(s.answers.empty());
  s.listening.acknowledged(1, R"({"resourceSubscriptions":["a:\"x\"","b:y"]})");  // not this one
  CHECK(s.answers.empty());
  s.listening.acknowledged(2, R"({"toolsListChanged":true,"resourceSubscriptions":["a:\"x\""]})");
  CHECK(s.ends == std::vector<std::uint64_t>{1});
  CHECK(s.answers == std::vector<std::pair<std::uint64_t, bool>>{{70, true}, {71, false}});
  s.listening.watches_changed();  // nothing has changed
  s.idle();
  CHECK(s.filters.size() == 2);
}

TEST_CASE(
    "changes are reported for the lists that the server has accepted, while the request is open") {
  Server s;
  s.start();
  CHECK_FALSE(s.listening.reports(ItemKind::tool));
  s.listening.acknowledged(1, R"({"toolsListChanged":true,"promptsListChanged":false})");
  CHECK(s.listening.reports(ItemKind::tool));
  CHECK_FALSE(s.listening.reports(ItemKind::prompt));
  CHECK_FALSE(s.listening.reports(ItemKind::resource));
  s.uris = {"a:x"};
  s.listening.watches_changed();
  REQUIRE(s.requests(2));
  CHECK(s.listening.reports(ItemKind::tool));  // the old request is still open
  s.listening.acknowledged(2, R"({"resourcesListChanged":true})");
  CHECK_FALSE(s.listening.reports(ItemKind::tool));
  CHECK(s.listening.reports(ItemKind::resource));
  CHECK(s.listening.reports(ItemKind::resource_template));
  s.listening.ended(2, false);
  CHECK_FALSE(s.listening.reports(ItemKind::resource));
}

TEST_CASE("a request that is replaced before its acknowledgement takes its subscriptions along") {
  Server s;
  s.start(false);
  s.uris = {"a:x"};
  s.listening.subscribe(70, "a:x");
  REQUIRE(s.requests(1));
  s.uris = {"a:x", "b:y"};
  s.listening.subscribe(71, "b:y");
  REQUIRE(s.requests(2));
  CHECK(s.ends == std::vector<std::uint64_t>{1});
  s.listening.acknowledged(2, R"({"resourceSubscriptions":["a:x","b:y"]})");
  CHECK(s.answers == std::vector<std::pair<std::uint64_t, bool>>{{70, true}, {71, true}});
  s.uris.clear();  // the last one has unsubscribed
  s.listening.watches_changed();
  s.idle();
  CHECK(s.filters.size() == 2);
  CHECK(s.ends == std::vector<std::uint64_t>{1, 2});
}

TEST_CASE("a request that ends is opened again, and lists are read again after that") {
  Server s;
  s.start();
  s.listening.acknowledged(1, "{}");
  s.listening.ended(9, false);  // another exchange
  s.listening.ended(1, false);
  CHECK(s.filters.size() == 1);
  REQUIRE(s.requests(2));
  CHECK(s.missed == 0);
  s.listening.acknowledged(2, "{}");
  CHECK(s.missed == 1);
  s.listening.ended(2, true);  // the server does not have the method
  s.idle(2'000);
  CHECK(s.filters.size() == 2);
}

TEST_CASE("subscriptions whose request fails are refused, and nothing follows a lost connection") {
  Server s;
  s.start();
  s.uris = {"a:x"};
  s.listening.subscribe(70, "a:x");
  REQUIRE(s.requests(2));
  s.listening.ended(2, false);
  CHECK(s.answers == std::vector<std::pair<std::uint64_t, bool>>{{70, false}});
  s.listening.subscribe(71, "a:x");
  s.listening.stop();
  s.idle(1'800);
  CHECK(s.filters.size() == 2);
  CHECK(s.answers.size() == 1);
  CHECK(s.loop->held(&s.listening).timers == 0);
}

TEST_CASE("an acknowledgement that is not one accepts nothing") {
  for (const std::string accepted :
       {"", "[]", "null", R"({"resourceSubscriptions":"a:x"})", R"({"resourceSubscriptions":[1]})",
        R"({"resourceSubscriptions":["a:xy"]})"}) {
    INFO(accepted);
    Server s;
    s.start(false);
    s.uris = {"a:x"};
    s.listening.subscribe(70, "a:x");
    REQUIRE(s.requests(1));
    s.listening.acknowledged(0, R"({"resourceSubscriptions":["a:x"]})");
    s.listening.acknowledged(1, accepted);
    CHECK(s.answers == std::vector<std::pair<std::uint64_t, bool>>{{70, false}});
  }
}
