// Test fixture: the plugin, a fake host that records events, and a test server.
#pragma once

#include <dirent.h>

#include <string>
#include <vector>

#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/plugin.h"
#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/testing/fake_host.hpp"
#include "server.hpp"

extern "C" const bh_entry *bh_static_entry_ConnectorHttp(void);

namespace connector_http::testing {

inline int open_descriptors() {
  int n = 0;
  DIR *dir = ::opendir("/proc/self/fd");
  while (::readdir(dir) != nullptr) ++n;
  ::closedir(dir);
  return n;
}

struct Event {
  enum Kind { message, failed, down, closed } kind;
  bh_lane lane = 0;
  std::uint64_t exchange = 0;
  std::string text;
  bh_status code = 0;
  std::uint32_t retry_after_ms = 0;
};

// Records the events that the plugin reports to the host.
struct Recorder {
  std::vector<Event> events;
  std::function<void(const Event &)> on_event;  // called within the host callback

  void add(Event event) {
    events.push_back(std::move(event));
    if (on_event) on_event(Event(events.back()));
  }
  // The details of the last failure.
  std::uint32_t http_status = 0;
  std::vector<std::string> challenges;
  std::string scope;
  void note(const bh_lane_failure &failure) {
    http_status = failure.http_status;
    challenges.clear();
    for (std::uint32_t i = 0; i < failure.challenge_count; ++i) {
      challenges.emplace_back(bh::view(failure.challenges[i]));
    }
    scope = bh::view(failure.scope);
  }
  static Recorder &of(void *ctx) {
    return *static_cast<Recorder *>(bh::testing::FakeHost::self(ctx).user);
  }
  static bh_host_connector table(const bh_limits *limits) {
    bh_host_connector t{};
    t.size = sizeof t;
    t.limits = limits;
    t.message = [](void *c, bh_lane lane, std::uint64_t exchange, bh_str text) {
      of(c).add({Event::message, lane, exchange, std::string(bh::view(text)), 0, 0});
    };
    t.exchange_failed = [](void *c, bh_lane lane, std::uint64_t exchange,
                           const bh_lane_failure *failure) {
      const bh_error *e = failure->error;
      of(c).note(*failure);
      of(c).add(
          {Event::failed, lane, exchange, std::string(bh::text(*e)), e->code, e->retry_after_ms});
    };
    t.lane_down = [](void *c, bh_lane lane, const bh_lane_failure *failure) {
      const bh_error *e = failure->error;
      of(c).note(*failure);
      of(c).add({Event::down, lane, 0, std::string(bh::text(*e)), e->code, e->retry_after_ms});
    };
    t.lane_closed = [](void *c, bh_lane lane) { of(c).add({Event::closed, lane, 0, "", 0, 0}); };
    return t;
  }
};

struct Fixture {
  bh::testing::FakeHost host;
  bh_limits limits = bh::testing::limits();
  Recorder seen;
  bh_host_connector table = Recorder::table(&limits);
  const bh_plugin *plugin = nullptr;
  const bh_connector *connector = nullptr;
  bh_error error = bh::make_error();

  explicit Fixture(const bh_limits *other = nullptr) {
    if (other != nullptr) limits = *other;
    host.user = &seen;
    host.add_ext(BH_EXT_HOST_CONNECTOR, &table);
  }
  ~Fixture() { stop(); }

  void start() {
    const bh_entry *entry = bh_static_entry_ConnectorHttp();
    if (entry->create("connector-http", host.host(), &plugin, &error) != BH_OK) std::abort();
    if (plugin->configure(plugin->self, bh::str("{}"), &error) != BH_OK) std::abort();
    if (plugin->start(plugin->self, &error) != BH_OK) std::abort();
    connector = static_cast<const bh_connector *>(plugin->get_ext(plugin->self, BH_EXT_CONNECTOR));
  }
  void stop() {
    if (plugin == nullptr) return;
    plugin->stop(plugin->self);
    plugin->destroy(plugin->self);
    plugin = nullptr;
  }

  static std::string definition(const std::string &url, const std::string &more = {}) {
    return R"({"type":"http","url":")" + url + "\"" + more + "}";
  }
  bh_status try_open(bh_lane id, const std::string &json, void **lane) {
    if (plugin == nullptr) start();
    bh_lane_info info{};
    info.size = sizeof info;
    info.server = bh::str("fake");
    info.definition = bh::str(json);
    info.connect_timeout_ms = 3000;
    error = bh::make_error();
    return connector->lane_open(plugin->self, id, &info, lane, &error);
  }
  void *open(const std::string &json, bh_lane id = 1) {
    void *lane = nullptr;
    if (try_open(id, json, &lane) != BH_OK) std::abort();
    return lane;
  }
  bh_status send(void *lane, std::uint64_t exchange, const std::string &text,
                 std::uint32_t kind = BH_LANE_REQUEST, std::uint32_t flags = 0,
                 std::uint64_t deadline_ns = 0) {
    // Splits the message into two parts, as the host does when it splices a message.
    const std::size_t half = text.size() / 2;
    const bh_str parts[2] = {bh::str(std::string_view(text).substr(0, half)),
                             bh::str(std::string_view(text).substr(half))};
    bh_lane_message message{};
    message.size = sizeof message;
    message.kind = kind;
    message.exchange = exchange;
    message.deadline_ns = deadline_ns;
    message.flags = flags;
    message.part_count = 2;
    message.parts = parts;
    error = bh::make_error();
    return connector->lane_send(plugin->self, lane, &message, &error);
  }
  bh_status notify(void *lane, const std::string &text) {
    return send(lane, 0, text, BH_LANE_NOTIFICATION);
  }
  void ready(void *lane, std::string_view revision = "2025-06-18") {
    connector->lane_ready(plugin->self, lane, bh::str(revision));
  }
  void abandon(void *lane, std::uint64_t exchange) {
    connector->lane_abandon(plugin->self, lane, exchange);
  }
  bool close(void *lane, bh_lane id = 1) {
    connector->lane_close(plugin->self, lane);
    return wait([&] { return count(Event::closed, id) == 1; });
  }
  // Sends `initialize` (as exchange 1) and `initialized`, and then calls ready().
  bool handshake(void *lane) {
    send(lane, 1, R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{}})", BH_LANE_REQUEST,
         BH_LANE_INITIALIZE);
    if (!wait([&] { return !seen.events.empty(); })) return false;
    if (seen.events.back().kind != Event::message) return false;
    notify(lane, R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
    ready(lane);
    seen.events.clear();
    return true;
  }

  bool wait(const std::function<bool()> &done, int ms = 20'000) { return host.run_until(done, ms); }
  bool wait_events(std::size_t n) {
    return wait([&] { return seen.events.size() >= n; });
  }
  int count(Event::Kind kind, bh_lane lane) const {
    return static_cast<int>(
        std::count_if(seen.events.begin(), seen.events.end(),
                      [&](const Event &e) { return e.kind == kind && e.lane == lane; }));
  }
};

inline std::string result(int id, const std::string &value = "{}") {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"result":)" + value + "}";
}
inline std::string call(int id) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
         R"(,"method":"tools/call","params":{"name":"x"}})";
}

// Handles the handshake requests of a test server. Returns true if `r` was such a request.
inline bool handshake_step(const Request &r, Peer &peer, const std::string &session = "s-1") {
  if (r.method == "GET") return peer.answer(405, ""), true;
  if (r.method == "DELETE") return peer.answer(200, ""), true;
  if (r.body.find("\"initialize\"") != std::string::npos) {
    const std::string header = session.empty() ? "" : "Mcp-Session-Id: " + session + "\r\n";
    return peer.answer(200, result(1), header), true;
  }
  if (r.body.find("\"id\"") == std::string::npos) return peer.answer(202, "", "", ""), true;
  return false;
}

}  // namespace connector_http::testing
