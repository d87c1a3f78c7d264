// The server stub of a link: converts the client stub's frames to plugin calls, and the plugins'
// calls to frames.
//
// Owner: the compartment. Runs on the reactor thread; tools plugins may complete calls on any
// thread.
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

#include "base/slots.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/abi/ext/tools.h"
#include "link/channel.hpp"
#include "link/texts.hpp"

namespace bulkhead::link {

// A plugin of this process as seen by a link. The tables are null if the plugin has failed; see
// `failure`.
struct ServedPlugin {
  std::string id;  // the instance id that the client stub uses
  const bh_connector *connector = nullptr;
  const bh_tools *tools = nullptr;
  const bh_policy *policy = nullptr;
  const bh_telemetry *telemetry = nullptr;
  void *self = nullptr;
  std::string failure;
  // Returns a telemetry instance's counters.
  std::function<std::vector<std::pair<std::string, std::uint64_t>>()> counters;
};

class ServerStub {
 public:
  // Limits for a compromised client stub. A correct client stub stays far below them.
  static constexpr std::size_t max_lanes = 1024, max_calls = 4096, max_subscriptions = 65'536;

  // `definitions` contains the result of bh_lane_info for each server. The client stub never
  // receives it. `limits`, `plugins` and `definitions` must outlive the stub.
  ServerStub(Reactor &reactor, const bh_limits &limits, const std::vector<ServedPlugin> &plugins,
             const std::map<std::string, std::string> &definitions);
  ~ServerStub();
  ServerStub(const ServerStub &) = delete;
  ServerStub &operator=(const ServerStub &) = delete;

  // Connects a started or restarted client stub. The previous client stub's lanes and calls end.
  // `on_lost` is called once if this trunk ends before it is replaced.
  void attach(OwnedFd trunk, std::function<void()> on_lost = nullptr);
  void close_lanes();  // closes the lanes in order; lanes() returns the number still open
  std::size_t lanes() const noexcept { return lanes_.size(); }

  // Functions of the plugins' host tables. Called on the reactor thread.
  void message(bh_lane lane, std::uint64_t exchange, std::string_view message);
  void exchange_failed(bh_lane lane, std::uint64_t exchange, const bh_error *error);
  void lane_down(bh_lane lane, const bh_error *error);
  void lane_closed(bh_lane lane);
  bh_status complete(bh_call call, std::uint32_t kind, std::string_view json);
  void progress(bh_call call, double value, double total, std::string_view message);
  void event(bh_call call, std::uint32_t kind, std::string_view detail);
  void list_changed(std::uint32_t plugin, std::uint32_t kind);
  void resource_updated(std::uint32_t plugin, std::string_view uri);

  // Stops starting new calls. The client stub keeps them for the next process.
  void drain();
  // Returns true if there is no client stub, or once the client stub sends no more calls, all
  // started calls have ended, and their answers have been written to the socket.
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
  void cancel_call(std::uint64_t exchange);
  void send_plugin(std::uint32_t number);
  void send_list(std::uint32_t plugin, std::uint32_t kind);
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
  // In-flight calls. Plugins see numbers assigned by this process because a restarted client stub
  // may reuse its own numbers.
  struct Call {
    std::uint64_t exchange = 0;
    std::uint32_t plugin = 0;
    bool wanted = true;  // whether the client stub that sent it is still connected
  };
  Slots<Call> calls_;
  bool draining_ = false;
  bool calls_ended_ = false;  // the client stub has sent calls_ended on the current trunk
  std::unordered_map<std::uint64_t, bh_call> by_exchange_;
  // The client stub's subscriptions: plugin number and URI. They end when the client stub
  // disconnects.
  std::set<std::pair<std::uint32_t, std::string>> subscriptions_;
};

}  // namespace bulkhead::link
