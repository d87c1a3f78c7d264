// The server stub of a link: translates frames from the client stub into calls to plugin functions,
// and the plugins' calls into frames.
//
// Owned by the compartment. All functions must be called on the reactor thread. Calls that plugins
// make on other threads are posted by the host tables (ToolsTable).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/lane_failure.hpp"
#include "base/slots.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/draft/state.h"
#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/abi/ext/tools.h"
#include "link/channel.hpp"
#include "link/texts.hpp"

namespace bulkhead::link {

// A plugin of this process. If it has failed, all tables are null and `failure` contains the
// reason.
struct ServedPlugin {
  std::string id;  // the instance ID that the client stub uses
  const bh_connector *connector = nullptr;
  const bh_tools *tools = nullptr;
  const bh_policy *policy = nullptr;
  const bh_state *state = nullptr;  // of a policy that offers it
  const bh_telemetry *telemetry = nullptr;
  void *self = nullptr;
  std::string failure;
  // Returns the counters of a telemetry plugin.
  std::function<std::vector<std::pair<std::string, std::uint64_t>>()> counters;
  std::function<void(std::string_view)> log;  // logs a warning of the stub; may be empty
};

class ServerStub {
 public:
  // Limits that protect against a compromised client stub. A correct client stub stays far below
  // them.
  static constexpr std::size_t max_lanes = 1024, max_calls = 4096, max_subscriptions = 65'536;

  // `definitions` maps the name of each server to the definition that is passed in its
  // bh_lane_info. The definitions are never sent to the client stub. `limits`, `plugins` and
  // `definitions` must outlive this object.
  ServerStub(Reactor &reactor, const bh_limits &limits, const std::vector<ServedPlugin> &plugins,
             const std::map<std::string, std::string> &definitions);
  ~ServerStub();
  ServerStub(const ServerStub &) = delete;
  ServerStub &operator=(const ServerStub &) = delete;

  // Connects to a new client stub. Closes the lanes, cancels the calls and ends the subscriptions
  // of the previous client stub. `on_lost` is called once if the trunk is closed before it is
  // replaced.
  void attach(OwnedFd trunk, std::function<void()> on_lost = nullptr);
  void close_lanes();  // asynchronous; lanes() returns the number of lanes that are not closed yet
  std::size_t lanes() const noexcept { return lanes_.size(); }

  // Called through the plugins' host tables on the reactor thread.
  void message(bh_lane lane, std::uint64_t exchange, std::string_view message);
  void exchange_failed(bh_lane lane, std::uint64_t exchange, const LaneFailure &failure);
  void lane_down(bh_lane lane, const LaneFailure &failure);
  void lane_closed(bh_lane lane);
  bh_status complete(bh_call call, std::uint32_t kind, std::string_view json);
  void progress(bh_call call, double value, double total, std::string_view message);
  void event(bh_call call, std::uint32_t kind, std::string_view detail);
  void list_changed(std::uint32_t plugin, std::uint32_t kind);
  void resource_updated(std::uint32_t plugin, std::string_view uri);

  // Stops accepting new calls. The client stub queues them for the next process.
  void drain();
  // Returns true if there is no client stub. Otherwise returns true if the client stub has stopped
  // sending calls, all calls have completed, and their results have been written to the socket.
  bool drained() const;

 private:
  struct Lane;
  struct TrunkReceiver;

  void on_trunk(const Frame &frame, std::string_view payload, OwnedFd fd);
  void trunk_lost();
  void send_draining();
  void open_lane(const Frame &frame, std::string_view payload, OwnedFd socket);
  bh_status find_wire(const Frame &frame, const LaneText &text, Lane &lane, bh_error *error);
  void begin_call(const Frame &frame, std::string_view payload);
  bool note_subscription(std::uint32_t plugin, const CallText &text);
  void end_subscriptions();
  bh_status call_plugin(const Frame &frame, std::string_view payload, bh_error *error);
  void expect_completed(std::uint64_t exchange);
  void cancel_call(const Frame &frame, std::string_view text);
  void send_plugin(std::uint32_t number);
  void send_lists(std::uint32_t plugin);
  bool send_list(std::uint32_t plugin, std::uint32_t kind);
  void close(Lane &lane);
  static void refuse_lane(Channel &lane);
  const ServedPlugin *find(std::uint32_t number) const;
  std::optional<std::uint32_t> find(std::string_view id) const;

  Reactor &reactor_;
  const bh_limits &limits_;
  const std::vector<ServedPlugin> &plugins_;
  const std::map<std::string, std::string> &definitions_;
  std::unique_ptr<TrunkReceiver> receiver_;
  std::unique_ptr<Channel> trunk_;
  std::function<void()> on_lost_;
  Slots<std::shared_ptr<Lane>> lanes_;
  // In-flight calls. Plugins are given this process's handles instead of the client stub's numbers,
  // because a restarted client stub may reuse its numbers.
  struct Call {
    std::uint64_t exchange = 0;
    std::uint32_t plugin = 0;
    bool wanted = true;  // whether the client stub that sent the call is connected
    bool cancelled = false;
  };
  Slots<Call> calls_;
  // The numbers of plugins whose lists could not be sent completely because list() has failed or is
  // pending. All lists of such a plugin are sent again when one of them changes.
  std::set<std::uint32_t> unlisted_;
  bool draining_ = false;
  bool calls_ended_ = false;  // the client stub has sent calls_ended on the current trunk
  std::unordered_map<std::uint64_t, bh_call> by_exchange_;
  // The client stub's subscriptions, as pairs of plugin number and URI. They end when the client
  // stub disconnects.
  std::set<std::pair<std::uint32_t, std::string>> subscriptions_;
};

}  // namespace bulkhead::link
