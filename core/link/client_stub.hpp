// The client stub of a link: presents the plugins of another process to the router as if they were
// local.
//
// A lane may be opened while the other process is starting. Messages are queued in the lane's own
// socket. The other end of the socket is sent to the process once there is a trunk.
//
// Owned by the Host. All functions must be called on the reactor thread.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/lane_failure.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/tools.h"
#include "link/channel.hpp"

namespace bulkhead::link {

// Events for the router.
class ClientStubEvents {
 public:
  virtual ~ClientStubEvents() = default;
  virtual void lane_message(bh_lane lane, std::uint64_t exchange, std::string_view message) = 0;
  virtual void lane_exchange_failed(bh_lane lane, std::uint64_t exchange,
                                    const LaneFailure &failure) = 0;
  virtual void lane_down(bh_lane lane, const LaneFailure &failure) = 0;
  virtual void lane_closed(bh_lane lane) = 0;
  virtual void call_complete(bh_call call, std::uint32_t kind, std::string_view json) = 0;
  virtual void call_failed(bh_call call, const Error &error) = 0;
  virtual void call_progress(bh_call call, double progress, double total,
                             std::string_view message) = 0;
  // Called with an event for the session database. `kind` is BH_RECORD_NET or another BH_RECORD_...
  // constant.
  virtual void call_event(bh_call call, std::uint32_t kind, std::string_view detail) = 0;
  // `plugin` is the instance ID of the tools plugin.
  virtual void tools_changed(const std::string &plugin, std::uint32_t kind) = 0;
  // Called each time the plugin has sent all of its lists, for example after its process has been
  // restarted. Subscriptions must then be requested again.
  virtual void tools_began(const std::string &plugin) = 0;
  virtual void resource_updated(const std::string &plugin, std::string_view uri) = 0;
};

class ClientStub {
 public:
  // `compartment` is used only in error texts. limits.message_bytes limits the size of a frame, and
  // limits.write_queue_bytes the size of a queue. `limits` and `events` must outlive this object.
  ClientStub(Reactor &reactor, std::string compartment, const bh_limits &limits,
             ClientStubEvents &events);
  ~ClientStub();
  ClientStub(const ClientStub &) = delete;
  ClientStub &operator=(const ClientStub &) = delete;

  // Connects to a newly started process. The lanes of the previous process are reported as down.
  // The previous process may still respond to the calls that it has received, until its own trunk
  // is closed.
  void attach(OwnedFd trunk);
  // Must be called if the process will not be restarted. Lanes and calls fail with `reason` until
  // the next attach().
  void give_up(const std::string &reason);

  // Return the function tables, and the `self` pointer of the plugin with this instance ID. They
  // are valid while this object exists, even if the other process does not run the plugin. Lanes
  // and calls of such a plugin fail.
  static const bh_connector &connector() noexcept;
  static const bh_tools &tools() noexcept;
  void *plugin(const std::string &id);
  // Returns the `self` pointer of a tools plugin that is new or has been recreated. Any lists that
  // the plugin sent earlier are discarded and requested again.
  void *fresh_tools(const std::string &id);
  // Returns the reason why the plugin failed. Returns an empty string if it has not failed or its
  // state is unknown.
  std::string_view failure(const std::string &id) const;

 private:
  struct Plugin;
  struct Lane;
  struct Trunk;
  friend struct ClientStubFunctions;

  void on_trunk(Trunk &trunk, const Frame &frame, std::string_view payload);
  void on_plugin(const Frame &frame, std::string_view payload);
  void on_call(Trunk &trunk, const Frame &frame, std::string_view payload);
  void on_refused(Trunk &trunk, const Frame &frame, std::string_view payload);
  void begin_again(const Frame &refused, std::string_view payload);
  bool wait(const Frame &frame, std::string_view payload);
  void send_waiting();
  void fail_waiting(const Error &error);
  void retire_trunk();
  void trunk_lost(Trunk &trunk, std::string_view reason);
  void fail_calls(Trunk &trunk, std::string_view reason);
  void lose_lanes(const Error &error);
  Trunk *trunk_of(bh_call call);
  bool hand_over(Lane &lane);
  void lane_lost(Lane &lane, const LaneFailure &failure);
  void end_lane(Lane &lane);
  Plugin *find(std::uint32_t number);
  void name(std::uint32_t number, std::string_view id);
  std::string about(std::string_view what) const;

  Reactor &reactor_;
  const std::string compartment_;
  const bh_limits &limits_;
  ClientStubEvents &events_;
  std::unique_ptr<Trunk> trunk_;
  // Trunks of processes that are about to exit, oldest first. These processes receive no new calls,
  // but they still send responses to their in-flight calls.
  static constexpr std::size_t max_ending = 4;
  std::deque<std::unique_ptr<Trunk>> ending_;
  std::string gave_up_;
  std::map<std::string, std::unique_ptr<Plugin>, std::less<>> plugins_;  // keyed by instance ID
  std::unordered_map<Lane *, std::unique_ptr<Lane>> lanes_;
  // Calls that wait for the next process, in order. None of them has been started. Limited to
  // max_waiting calls and write_queue_bytes bytes.
  static constexpr std::size_t max_waiting = 1024;
  struct Waiting {
    Frame frame;
    std::string payload;
  };
  std::deque<Waiting> waiting_;
  std::size_t waiting_bytes_ = 0;
};

}  // namespace bulkhead::link
