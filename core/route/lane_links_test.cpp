// Tests the connections between lanes and the other parts: changed lists, time-outs of the lane's
// own requests, lost connections, and calls that a lane may no longer send.
#include "route/lane_links.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "route/wire_world.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;

struct LinksWorld : WireWorld {
  Upstreams upstreams;
  FilteredLists filters{{gate, pins, names, profile.limits, counters, *loop,
                         [](std::int32_t, std::string_view) {}, [](std::uint64_t, bool) {},
                         [](View &) {}, [] {}}};
  Views views{{upstreams, sessions, names, profile, *loop, recorder, answers, filters,
               [](Session &, Incoming &) {}, [](View &) {}, [](Lane &) {}, [] {}, [] {}}};
  ToolsEdge tools{{*loop, exchange_table, call_answers, ends, answers, gate, notifications,
                   subscriptions, recorder, counters, [](std::int32_t, std::string_view) {}}};
  Texts lines, learned;
  std::function<std::optional<std::string>(std::string_view)> mask;
  std::unique_ptr<LaneLinks> links = linked();
  FakeServer server;
  Session *client_session = nullptr;

  std::unique_ptr<LaneLinks> linked() {
    return std::unique_ptr<LaneLinks>(
        new LaneLinks({profile.limits, *loop, counters, exchange_table, deadlines, calls,
                       call_answers, ends, edge, tools, asks, subscriptions, views, pins,
                       [this](std::int32_t, std::string_view text) { lines.emplace_back(text); },
                       [this](std::string_view text) { return mask ? mask(text) : std::nullopt; },
                       [this](const ListNews &) { learned.emplace_back("list"); }}));
  }
  // Adds the server, whose first connection lists the tool "t", and a client.
  void begin_with(std::uint32_t pool_size, const std::string &tools_listed) {
    ServerDef def = server_named("s");
    def.pool_size = pool_size;
    def.pool_safe_tools = {"t"};
    auto made = std::make_unique<Upstream>(*links, std::move(def));
    made->connector = &connector_table;
    made->self = &server;
    upstreams.add(std::move(made));
    client_session = &open_session(sessions, client);
    client_session->initialized = true;
    views.join(*client_session);
    connects(server, tools_listed);
    loop->poll(0);
  }
  ~LinksWorld() override {
    ends.end_session(*client_session);
    views.end_all();
    for (const auto &one : upstreams.all()) {
      while (!one->lanes().empty()) one->remove(one->lanes().back().get());
    }
  }
  Lane &at(std::size_t index) { return *upstreams.all()[0]->lanes().at(index); }
  // Returns the error message for a new call of "t", or an empty string if it was sent.
  std::string call_error() {
    client.sent.clear();
    const Scanned m(R"({"jsonrpc":"2.0","id":"c","method":"tools/call",)"
                    R"("params":{"name":"s__t","arguments":{}}})");
    Incoming request{{client_session->handle, 7, 0}, m.get(), 1};
    CallInHand hand{request.message, {&at(0), {}, m.scan.name}, {}, {}};
    hand.target.resolved.original_token = "\"t\"";
    const auto &listed = at(0).items(ItemKind::tool).items;
    if (!listed.empty()) hand.target.resolved.definition_hash = listed[0].hash;
    calls.begin(*client_session, request, hand);
    if (client.sent.empty()) return {};
    return std::string(mcp::member(mcp::member(client.sent[0].text, "error"), "message"));
  }
  std::string tools_shown() {
    const Catalogue *shown = filters.of(*client_session->view, *client_session);
    REQUIRE(shown != nullptr);
    return std::string(shown->page(ItemKind::tool, 0, 99)->items);
  }
  // The server announces a changed list on its newest connection, and sends it.
  void lists_again(const std::string &tools_listed) {
    sends(server, R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed"})");
    answers_with(server, "tools/list", R"({"tools":)" + tools_listed + "}");
    loop->poll(0);
  }
};

const std::string reads = R"([{"name":"t","description":"reads"}])";
const std::string evil = R"([{"name":"t","description":"evil"}])";

}  // namespace

TEST_CASE(
    "a list that changes on any connection of a pool affects the calls and lists of clients") {
  LinksWorld w;
  w.profile.pins.mode = PinRules::Mode::enforce;
  w.pins.use_profile({});
  w.begin_with(2, reads);
  REQUIRE(w.upstreams.all()[0]->lanes().size() == 2);
  w.connects(w.server, reads);
  REQUIRE(w.at(1).state() == LaneState::ready);
  CHECK(w.call_error().empty());
  CHECK(w.call_error().empty());
  CHECK(w.tools_shown().find("s__t") != std::string::npos);

  w.lists_again(evil);  // on the second connection
  CHECK(w.at(0).items(ItemKind::tool).bytes.find("reads") != std::string::npos);
  CHECK(w.tools_shown().find("s__t") == std::string::npos);
  for (int i = 0; i < 4; ++i) CHECK(w.call_error().find("tool-pin") != std::string::npos);
  CHECK(w.lane.sent == 0);

  w.lists_again(reads);
  CHECK(w.tools_shown().find("s__t") != std::string::npos);
  CHECK(w.call_error().empty());
}

TEST_CASE("a time-out of the lane's own request fails the attempt to connect") {
  LinksWorld w;
  ServerDef def = server_named("slow");
  auto made = std::make_unique<Upstream>(*w.links, std::move(def));
  FakeServer slow;
  made->connector = &connector_table;
  made->self = &slow;
  Lane *lane = made->lane_for(0, 0);
  lane->start();
  REQUIRE(lane->exchanges.head != nullptr);
  Exchange &handshake = *lane->exchanges.head;
  handshake.timeout_ms = 321;
  const std::uint64_t number = handshake.id;
  w.links->timed_out(handshake);
  CHECK(w.counters.timeouts == 1);
  CHECK(slow.abandoned == std::vector<std::uint64_t>{number});
  CHECK(w.exchange_table.get(number) == nullptr);
  CHECK(lane->state() == LaneState::waiting);
  CHECK(lane->reason().find("initialize within 321 ms") != std::string::npos);
  w.begin_with(1, reads);
  made->remove(lane);
}

TEST_CASE("messages that cannot be rewritten are counted and logged; credentials are masked") {
  LinksWorld w;
  w.begin_with(1, reads);
  w.links->message_lost(w.at(0), mcp::Method::notifications_progress);
  CHECK(w.counters.dropped_events == 1);
  REQUIRE(!w.lines.empty());
  CHECK(w.lines.back().find("server \"s\": notifications/progress was dropped") == 0);
  CHECK_FALSE(w.links->without_credentials("secret").has_value());
  w.mask = [](std::string_view) { return std::optional<std::string>("***"); };
  CHECK(w.links->without_credentials("secret") == "***");
}

TEST_CASE("a queued call is sent again if its definition changed before its turn") {
  LinksWorld w;
  w.begin_with(1, reads);
  const_cast<ServerDef &>(w.upstreams.all()[0]->def()).max_in_flight = 1;
  CHECK(w.call_error().empty());
  CHECK(w.call_error().empty());  // waits for the first call
  const std::string first = w.server.number_of("tools/call");
  w.policy.needs = BH_POLICY_DECIDES;
  w.gate.use(&policy_table, &w.policy);
  w.lists_again(evil);
  w.sends(w.server, R"({"jsonrpc":"2.0","id":)" + first + R"(,"result":{}})");
  CHECK(w.server.number_of("tools/call") != first);
  CHECK(w.policy.flags.size() == 1);  // evaluated with the new definition
  CHECK(w.table.size() == 1);
}
