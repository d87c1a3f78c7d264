// Tests the connection between a lane and its connector, without the lane.
#include "route/lane_connection.hpp"

#include "route/lane_part_fakes.hpp"

using namespace bulkhead;

namespace {

using Texts = std::vector<std::string>;

struct Parts : LaneParts, LaneConnection::Owner {
  bh_status opens = BH_OK, sends = BH_OK;
  Texts messages{};  // to the server
  Texts calls{};     // other functions of the connector, in order
  std::vector<std::uint64_t> deadlines{};
  std::function<void()> inside{};  // called inside the next lane_send()
  LaneConnection connection{lane, *this, *this};
  std::vector<Error> unsent{};

  static Parts &of(void *self) { return *static_cast<Parts *>(self); }
  static const bh_connector functions;

  Parts() {
    upstream.connector = &functions;
    upstream.self = this;
  }
  void own_answer(Exchange &e, const mcp::Scan *scan, std::string_view, const Error *error,
                  std::uint32_t) override {
    CHECK(scan == nullptr);
    REQUIRE(error != nullptr);
    unsent.push_back(*error);
    drop(e);
  }
  Result<void> open(std::uint32_t *retry_after_ms) {
    return connection.open(register_wire(nullptr), 1'000, retry_after_ms);
  }
  void open() {
    std::uint32_t unused = 0;
    REQUIRE(open(&unused).has_value());
  }
  void ping(std::uint64_t timeout_ms = 0) {
    Exchange *e = connection.own_exchange(Purpose::quiet, mcp::Method::ping, timeout_ms);
    REQUIRE(e != nullptr);
    connection.send_own(*e, {}, 0, {});
  }
};

const bh_connector Parts::functions{
    sizeof(bh_connector),
    0,
    [](void *self, bh_lane, const bh_lane_info *info, void **wire, bh_error *error) -> bh_status {
      Parts &p = of(self);
      CHECK(bh::view(info->server) == "s");
      CHECK(info->connect_timeout_ms == 1'000);
      *wire = self;
      if (p.opens == BH_OK) return BH_OK;
      bh::fail(error, p.opens, "no program");
      error->retry_after_ms = 30;
      return p.opens;
    },
    [](void *self, void *wire, const bh_lane_message *m, bh_error *error) -> bh_status {
      Parts &p = of(self);
      CHECK(wire == self);
      if (p.sends != BH_OK) return bh::fail(error, p.sends, "the pipe is full");
      p.messages.push_back(joined(m->parts, m->part_count));
      p.deadlines.push_back(m->deadline_ns);
      call_once(p.inside);
      return BH_OK;
    },
    [](void *self, void *, bh_str revision) {
      of(self).calls.push_back("ready " + std::string(bh::view(revision)));
    },
    [](void *self, void *, std::uint64_t) { of(self).calls.emplace_back("abandon"); },
    [](void *self, void *) { of(self).calls.emplace_back("close"); },
};

}  // namespace

TEST_CASE("a connection that cannot be opened has no handle") {
  Parts p;
  p.opens = BH_E_UNAVAILABLE;
  std::uint32_t retry_after_ms = 0;
  const Result<void> opened = p.open(&retry_after_ms);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().code == BH_E_UNAVAILABLE);
  CHECK(opened.error().text == "no program");
  CHECK(retry_after_ms == 30);
  CHECK(p.connection.handle() == 0);
  CHECK(p.wires.empty());
}

TEST_CASE("a connection is closed once, after the host was notified") {
  Parts p;
  p.open();
  const bh_lane handle = p.connection.handle();
  CHECK(handle != 0);
  p.connection.opened("2025-11-25");
  p.connection.close();
  CHECK(p.connection.handle() == 0);
  CHECK(p.wires.contains(handle));  // until the connector has released it
  CHECK(p.events == Texts{"lost"});
  CHECK(p.calls == Texts{"ready 2025-11-25", "close"});
}

TEST_CASE("messages without a connection are dropped") {
  Parts p;
  const bh_str part = bh::str("{}");
  p.connection.send(BH_LANE_NOTIFICATION, &part, 1);
  p.connection.abandon(1);
  p.connection.retract(1, {}, nullptr);
  CHECK(p.messages.empty());
  CHECK(p.calls.empty());
}

TEST_CASE("the lane's own requests occupy a place at the server and have a deadline") {
  Parts p;
  p.open();
  p.ping();
  p.ping(5'000);
  CHECK(p.lane.in_flight == 2);
  REQUIRE(p.messages.size() == 2);
  for (const std::string &text : p.messages) {
    REQUIRE(mcp::valid_json(text));
    CHECK(mcp::member(text, "method") == R"("ping")");
    CHECK(mcp::member(text, "params").empty());
  }
  CHECK(p.deadlines[0] == 0);
  CHECK(p.deadlines[1] > p.loop->now_ns());
}

TEST_CASE("a request that cannot be sent is reported to the lane, unless it has ended") {
  Parts p;
  p.open();
  p.sends = BH_E_LIMIT;
  p.ping();
  REQUIRE(p.unsent.size() == 1);
  CHECK(p.unsent[0].code == BH_E_LIMIT);
  CHECK(p.unsent[0].text == "the pipe is full");
  CHECK(p.lane.in_flight == 0);
  CHECK(p.table.size() == 0);
}

TEST_CASE("a retracted request is cancelled at the server") {
  Parts p;
  p.open();
  p.connection.retract(12, {}, nullptr);
  REQUIRE(p.messages.size() == 1);
  const std::string_view params = mcp::member(p.messages[0], "params");
  CHECK(mcp::member(p.messages[0], "method") == R"("notifications/cancelled")");
  CHECK(mcp::member(params, "requestId") == "12");
  CHECK(p.calls == Texts{"abandon"});
}

TEST_CASE("an error text names the server once") {
  Parts p;
  CHECK(p.connection.about("gone") == R"(server "s": gone)");
  CHECK(p.connection.about(R"(server "s" is gone)") == R"(server "s" is gone)");
}
