// A fake host that runs the connector in tests and records its calls.
#pragma once

#include <bulkhead/testing/fake_host.hpp>
#include <catch2/catch.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "connector-stdio/connector_stdio.hpp"

namespace connector_stdio {

struct Seen {
  void *lane = nullptr;
  std::vector<std::string> messages;
  std::vector<std::pair<bh_status, std::string>> downs;
  int closed = 0;
};

class TestUp {
 public:
  explicit TestUp(const bh_limits &l = bh::testing::limits()) : limits(l) {
    table_.size = sizeof table_;
    table_.limits = &limits;
    table_.message = [](void *c, bh_lane lane, std::uint64_t, bh_str text) {
      TestUp &up = get(c);
      up.lanes[lane].messages.emplace_back(bh::view(text));
      if (up.on_message) up.on_message(lane);
    };
    table_.exchange_failed = [](void *, bh_lane, std::uint64_t, const bh_lane_failure *) {};
    table_.lane_down = [](void *c, bh_lane lane, const bh_lane_failure *failure) {
      const bh_error *error = failure->error;
      TestUp &up = get(c);
      up.lanes[lane].downs.emplace_back(error->code, bh::text(*error));
      if (up.close_when_down) up.plugin->lane_close(up.lanes[lane].lane);
    };
    table_.lane_closed = [](void *c, bh_lane lane) { ++get(c).lanes[lane].closed; };
    host.user = this;
    host.add_ext(BH_EXT_HOST_CONNECTOR, &table_);
    plugin = std::make_unique<ConnectorStdio>(host.host());
    bh_error error = bh::make_error();
    REQUIRE(plugin->configure(bh::str("{}"), &error) == BH_OK);
    REQUIRE(plugin->start(&error) == BH_OK);
  }
  ~TestUp() {
    stop();
    CHECK(host.watches() == 0);
    CHECK(host.timers() == 0);
    CHECK(host.faults().empty());
  }
  void stop() {
    if (plugin) plugin->stop();
    plugin.reset();
    host.forget();
  }

  static TestUp &get(void *ctx) {
    return *static_cast<TestUp *>(bh::testing::FakeHost::self(ctx).user);
  }

  bh_status open_json(bh_lane lane, const std::string &json, std::string *text = nullptr) {
    bh_lane_info info{};
    info.size = sizeof info;
    info.server = bh::str("weather");
    info.definition = bh::str(json);
    info.connect_timeout_ms = 1000;
    bh_error error = bh::make_error();
    const bh_status status = plugin->lane_open(lane, info, &lanes[lane].lane, &error);
    if (text != nullptr) *text = bh::text(error);
    return status;
  }
  // Opens a lane to the test child. `more` contains additional members for the definition, each
  // preceded by a comma.
  void open(bh_lane lane, const std::string &mode, const std::string &value = "",
            const std::string &more = "") {
    std::string why;
    const std::string json = std::string(R"({"command":")") + TEST_CHILD + R"(","args":[")" + mode +
                             R"(",")" + value + "\"]" + more + "}";
    const bh_status status = open_json(lane, json, &why);
    INFO(why);
    REQUIRE(status == BH_OK);
  }
  bh_status send(bh_lane lane, const std::vector<std::string_view> &texts,
                 std::string *why = nullptr) {
    std::vector<bh_str> parts;
    for (const std::string_view t : texts) parts.push_back(bh::str(t));
    bh_lane_message message{};
    message.size = sizeof message;
    message.kind = BH_LANE_REQUEST;
    message.exchange = 1;
    message.parts = parts.data();
    message.part_count = static_cast<std::uint32_t>(parts.size());
    bh_error error = bh::make_error();
    const bh_status status = plugin->lane_send(lanes[lane].lane, message, &error);
    if (why != nullptr) *why = bh::text(error);
    return status;
  }
  void close(bh_lane lane) { plugin->lane_close(lanes[lane].lane); }

  bool wait_messages(bh_lane lane, std::size_t n) {
    return host.run_until([&] { return lanes[lane].messages.size() >= n; }, 20'000);
  }
  bool wait_down(bh_lane lane) {
    return host.run_until([&] { return !lanes[lane].downs.empty(); }, 20'000);
  }
  bool wait_closed(bh_lane lane) {
    return host.run_until([&] { return lanes[lane].closed > 0; }, 20'000);
  }

  bh_limits limits;
  bh::testing::FakeHost host;
  std::map<bh_lane, Seen> lanes;
  std::unique_ptr<ConnectorStdio> plugin;
  std::function<void(bh_lane)> on_message;
  bool close_when_down = false;

 private:
  bh_host_connector table_{};
};

}  // namespace connector_stdio
