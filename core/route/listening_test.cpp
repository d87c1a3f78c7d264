// Tests the subscriptions/listen request of a lane.
#include "route/listening.hpp"

#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <utility>

#include "mcp/scan.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;
using Outcomes = std::vector<std::pair<std::uint64_t, std::string>>;

struct Server : Listening::Wire {
  std::unique_ptr<Reactor> loop = *Reactor::create();
  Texts uris;
  Texts filters;
  std::vector<std::uint64_t> ends;
  Outcomes outcomes;         // accepted URIs, or the reason
  std::vector<bool> missed;  // the arguments of changes_missed()
  bool sends = true;
  std::function<void()> inside;  // called inside the next send_listen()
  Listening listening{*loop, *this};

  Texts watched() const override { return uris; }
  bool send_listen(const std::string &filter, std::uint64_t *exchange) override {
    REQUIRE(mcp::valid_json(filter));
    filters.push_back(filter);
    if (sends) *exchange = filters.size();
    if (const auto now = std::exchange(inside, nullptr)) now();
    return sends;
  }
  void end_listen(std::uint64_t exchange) override { ends.push_back(exchange); }
  void changes_missed(bool interrupted) override { missed.push_back(interrupted); }
  void accepted(std::uint64_t exchange, std::string_view list) override {
    outcomes.emplace_back(exchange, list);
  }
  void rejected(std::uint64_t exchange, std::string_view reason) override {
    outcomes.emplace_back(exchange, reason);
  }
  void start(bool tools = true) {
    ServerCaps caps;
    caps.tools_changed = tools;
    listening.start(caps);
  }
  // Adds the URIs of a client's resources/subscribe request.
  void subscribe(const Texts &more) {
    uris.insert(uris.end(), more.begin(), more.end());
    listening.subscribe(0);
  }
  bool requests(std::size_t count) {
    // The third retry comes after 5 s at the latest.
    for (int i = 0; i < 2'000 && filters.size() < count; ++i) loop->poll(10);
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

TEST_CASE("the accepted resources are reported, and the old request is closed then") {
  Server s;
  s.start();
  s.listening.acknowledged(1, R"({"toolsListChanged":true})");
  CHECK(s.missed == std::vector<bool>{false});  // the first one of this connection
  s.subscribe({"a:\"x\""});
  s.subscribe({"b:y"});
  REQUIRE(s.requests(2));  // one for both
  CHECK(mcp::member(s.filters[1], "resourceSubscriptions") == R"(["a:\"x\"","b:y"])");
  CHECK(s.ends.empty());
  s.outcomes.clear();
  s.listening.acknowledged(0, R"({"resourceSubscriptions":["b:y"]})");
  s.listening.acknowledged(1, R"({"resourceSubscriptions":["b:y"]})");  // not this one
  CHECK(s.outcomes.empty());
  s.listening.acknowledged(2, R"({"toolsListChanged":true,"resourceSubscriptions":["a:\"x\""]})");
  CHECK(s.ends == std::vector<std::uint64_t>{1});
  CHECK(s.outcomes == Outcomes{{2, R"(["a:\"x\""])"}});
  CHECK(s.missed.size() == 1);
  s.listening.watches_changed();  // nothing has changed
  s.idle();
  CHECK(s.filters.size() == 2);
  s.listening.subscribe(2);  // the server has not accepted the resource, but may accept it now
  REQUIRE(s.requests(3));
  CHECK(s.filters[2] == s.filters[1]);
}

TEST_CASE("an acknowledgement that is not an object accepts nothing") {
  for (const std::string accepted : {"", "[]", "null", R"("resourceSubscriptions")"}) {
    INFO(accepted);
    Server s;
    s.start();
    s.listening.acknowledged(1, accepted);
    CHECK(s.outcomes == Outcomes{{1, ""}});
    CHECK_FALSE(s.listening.reports(ItemKind::tool));
  }
}

TEST_CASE("an acknowledgement may arrive while its request is being sent") {
  Server s;
  s.inside = [&] { s.listening.acknowledged(1, R"({"toolsListChanged":true})"); };
  s.start();
  CHECK(s.listening.reports(ItemKind::tool));
  REQUIRE(s.outcomes == Outcomes{{1, ""}});
  s.subscribe({"a:x"});
  s.inside = [&] { s.listening.ended(2, false, "no"); };
  REQUIRE(s.requests(2));
  CHECK(s.outcomes.back() == std::pair<std::uint64_t, std::string>{2, "no"});
  CHECK(s.listening.reports(ItemKind::tool));  // the first request is still open
  REQUIRE(s.requests(3));                      // the second one is sent again
  CHECK(s.filters[2] == s.filters[1]);
}

TEST_CASE("a resource that is watched again is requested again") {
  Server s;
  s.start();
  s.listening.acknowledged(1, "{}");
  s.subscribe({"a:x"});
  REQUIRE(s.requests(2));
  SECTION("after the server has not accepted it") {
    s.listening.acknowledged(2, "{}");
  }
  SECTION("before the acknowledgement") {}
  s.listening.subscribe(0);  // the former client has undone its subscription
  s.listening.acknowledged(2, "{}");
  REQUIRE(s.requests(3));
  CHECK(s.filters[2] == s.filters[1]);
}

TEST_CASE("a request that could not be sent is sent later, although another one is open") {
  Server s;
  s.start();
  s.listening.acknowledged(1, "{}");
  s.sends = false;
  s.subscribe({"a:x"});
  REQUIRE(s.requests(2));
  s.sends = true;
  REQUIRE(s.requests(3));
  CHECK(s.filters[2] == s.filters[1]);
  CHECK(s.ends.empty());
}

TEST_CASE("the open request is closed if its replacement failed and nothing is watched then") {
  Server s;
  s.start(false);
  s.subscribe({"a:x"});
  REQUIRE(s.requests(1));
  s.listening.acknowledged(1, R"({"resourceSubscriptions":["a:x"]})");
  s.subscribe({"b:y"});
  REQUIRE(s.requests(2));
  s.listening.ended(2, false, "no");
  s.uris.clear();
  s.listening.watches_changed();
  s.idle(1500);
  CHECK(s.ends == std::vector<std::uint64_t>{1});
  CHECK(s.filters.size() == 2);
}

TEST_CASE("changes that follow each other do not postpone a request") {
  Server s;
  s.start();
  s.listening.acknowledged(1, "{}");
  s.subscribe({"a:x"});
  // Each step is shorter than collect_ms.
  for (int i = 0; i < 100 && s.filters.size() < 2; ++i) {
    s.listening.watches_changed();
    s.loop->poll(5);
  }
  CHECK(s.filters.size() == 2);
}

TEST_CASE("a request that was not acknowledged is replaced only after some time") {
  Server s;
  s.start();
  s.subscribe({"a:x"});
  s.idle(100);
  CHECK(s.filters.size() == 1);
  SECTION("its acknowledgement arrives") {
    s.listening.acknowledged(1, "{}");
    s.idle(100);
    CHECK(s.filters.size() == 2);
    CHECK(s.ends.empty());
  }
  SECTION("it does not arrive") {
    REQUIRE(s.requests(2));
    CHECK(s.ends == std::vector<std::uint64_t>{1});
  }
}

TEST_CASE("changes do not shorten the time before a failed request is sent again") {
  Server s;
  s.start();
  s.listening.acknowledged(1, "{}");
  s.listening.ended(1, false, "gone");
  // The changes take longer than collect_ms, but much less than the 750 ms of the shortest delay,
  // also on a loaded machine.
  for (int i = 0; i < 20; ++i) {
    s.subscribe({"a:" + std::to_string(i)});
    s.loop->poll(2);
  }
  CHECK(s.filters.size() == 1);
  REQUIRE(s.requests(2));
  CHECK(s.filters[1].find("\"a:0\"") != std::string::npos);
  CHECK(s.filters[1].find("\"a:19\"") != std::string::npos);
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
  s.listening.ended(2, false, "gone");
  CHECK_FALSE(s.listening.reports(ItemKind::resource));
}

TEST_CASE("the request is closed when nothing is watched any longer") {
  Server s;
  s.start(false);
  s.subscribe({"a:x", "b:y"});
  REQUIRE(s.requests(1));
  s.listening.acknowledged(1, R"({"resourceSubscriptions":["a:x","b:y"]})");
  s.uris.clear();
  s.listening.watches_changed();
  s.idle();
  CHECK(s.filters.size() == 1);
  CHECK(s.ends == std::vector<std::uint64_t>{1});
}

TEST_CASE("a request that ends is opened again, and lists are read again after that") {
  Server s;
  s.start();
  s.listening.acknowledged(1, "{}");
  s.listening.ended(9, false, "gone");  // another exchange
  s.listening.ended(1, false, "gone");
  CHECK(s.filters.size() == 1);
  REQUIRE(s.requests(2));
  CHECK(s.missed == std::vector<bool>{false});
  s.listening.acknowledged(2, "{}");
  CHECK(s.missed == std::vector<bool>{false, true});
  s.listening.ended(2, true, "no method");
  s.idle(2'000);
  CHECK(s.filters.size() == 2);
}

TEST_CASE("the reason of a failed request is reported, and nothing follows a lost connection") {
  Server s;
  s.sends = false;  // no exchange is available
  s.start();
  REQUIRE(s.requests(2));  // it is sent again
  s.sends = true;
  REQUIRE(s.requests(3));
  s.listening.ended(3, false, "busy");
  CHECK(s.outcomes == Outcomes{{3, "busy"}});
  REQUIRE(s.requests(4));
  s.listening.acknowledged(4, "{}");
  CHECK(s.missed == std::vector<bool>{true});  // lists may have been read before
  s.listening.ended(4, false, "gone");
  CHECK(s.outcomes.size() == 2);  // an acknowledged request is not rejected
  s.subscribe({"a:x"});
  s.listening.stop();
  s.idle(1'800);
  CHECK(s.filters.size() == 4);
  CHECK(s.outcomes.size() == 2);
  CHECK(s.loop->held(&s.listening).timers == 0);
}
