#include "pipe/client_state.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace bulkhead;
using namespace bulkhead::pipe;

namespace {

struct Recorded final : Ends {
  void to_client(std::string_view text) override { told.emplace_back(text); }
  Result<void> open_lane(bh_lane) override { return {}; }
  Result<void> send(std::uint32_t kind, std::uint64_t exchange, std::string_view text) override {
    if (full) return fail(BH_E_UNAVAILABLE, "it is ending");
    CHECK(kind == BH_LANE_REQUEST);
    exchanges.push_back(exchange);
    sent.emplace_back(text);
    return {};
  }
  void finish_lane() override {}
  void close_lane() override {}
  void hold_lane(bool) override {}
  void hold_client(bool) override {}
  void log(std::int32_t, std::string_view) override {}
  void done(std::string_view) override {}

  bool full = false;
  std::vector<std::uint64_t> exchanges;
  std::vector<std::string> sent, told;
};

std::string subscribe(const std::string &uri, const char *method = "resources/subscribe") {
  return R"({"jsonrpc":"2.0","id":7,"method":")" + std::string(method) + R"(","params":{"uri":")" +
         uri + "\"}}";
}

const std::string warning =
    R"({"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"warning"}})";
const std::string debug =
    R"({"jsonrpc":"2.0","id":3,"method":"logging/setLevel","params":{"level":"debug"}})";

struct StateWorld {
  RouteLimits limits;
  ClientState state{limits};
  Backlog backlog{limits};
  Recorded ends;

  void subscribed(const std::string &uri) {
    state.on_sent("\"resources/subscribe\"", subscribe(uri));
  }
};

}  // namespace

TEST_CASE("the last log level and each subscription are repeated with new exchange numbers") {
  StateWorld w;
  w.state.on_sent("\"logging/setLevel\"", warning);
  w.state.on_sent("\"logging/setLevel\"", debug);
  w.subscribed("file:///a");
  w.subscribed("file:///b");
  w.subscribed("file:///a");
  w.subscribed("file:///c");
  w.state.on_sent("\"resources/unsubscribe\"", subscribe("file:///b", "resources/unsubscribe"));
  w.state.on_sent("\"resources/unsubscribe\"", subscribe("file:///x", "resources/unsubscribe"));
  w.state.on_sent("\"tools/call\"", "{}");
  w.state.repeat(w.ends, w.backlog);
  CHECK(w.ends.sent ==
        std::vector<std::string>{debug, subscribe("file:///a"), subscribe("file:///c")});
  REQUIRE(w.ends.exchanges.size() == 3);
  for (const std::uint64_t exchange : w.ends.exchanges) {
    CHECK(w.state.is_repetition(exchange));
    CHECK_FALSE(w.state.is_repetition(exchange));  // each request is answered only once
  }
  CHECK_FALSE(w.state.is_repetition(w.backlog.next_exchange()));
}

TEST_CASE("if a connection is lost again, the next connection receives all requests again") {
  StateWorld w;
  w.subscribed("file:///a");
  w.ends.full = true;
  w.state.repeat(w.ends, w.backlog);
  CHECK(w.ends.sent.empty());
  w.ends.full = false;
  w.state.repeat(w.ends, w.backlog);
  w.state.on_lost();
  CHECK_FALSE(w.state.is_repetition(w.ends.exchanges.at(0)));
  w.state.repeat(w.ends, w.backlog);
  CHECK(w.ends.sent.size() == 2);
}

TEST_CASE("only lists that the client has read are announced") {
  StateWorld w;
  w.state.announce_lists(w.ends);
  CHECK(w.ends.told.empty());
  w.state.on_sent("\"tools/list\"", "{}");
  w.state.on_sent("\"resources/templates/list\"", "{}");
  w.state.announce_lists(w.ends);
  CHECK(w.ends.told == std::vector<std::string>{
                           R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})",
                           R"({"jsonrpc":"2.0","method":"notifications/resources/list_changed"})"});
  w.state.clear();
  w.ends.told.clear();
  w.state.announce_lists(w.ends);
  CHECK(w.ends.told.empty());
}

TEST_CASE("the recorded subscriptions are limited in number and bytes") {
  StateWorld w;
  w.limits.max_subscriptions = 2;
  w.subscribed("file:///a");
  w.subscribed("file:///b");
  w.subscribed("file:///c");
  w.state.repeat(w.ends, w.backlog);
  CHECK(w.ends.sent.size() == 2);

  StateWorld small;
  small.limits.max_subscription_bytes = subscribe("file:///a").size() * 2;
  small.subscribed("file:///a");
  small.subscribed("file:///b");
  small.subscribed("file:///c");
  small.state.on_sent("\"resources/unsubscribe\"", subscribe("file:///a", "resources/unsubscribe"));
  small.subscribed("file:///d");
  small.state.repeat(small.ends, small.backlog);
  CHECK(small.ends.sent ==
        std::vector<std::string>{subscribe("file:///b"), subscribe("file:///d")});
  // Requests without a URI, which a host rejects.
  small.state.on_sent("\"resources/subscribe\"", R"({"id":1,"method":"resources/subscribe"})");
  small.state.on_sent("\"resources/subscribe\"",
                      R"({"id":1,"method":"resources/subscribe","params":[]})");
}
