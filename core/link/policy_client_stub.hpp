// The client stub of a policy link: presents another process's policy to the router as a policy
// that answers every request with a delay.
//
// If that process fails in any way, requests are refused. Requests made before the process first
// starts are queued; during a restart, requests are refused immediately. If a request times out
// before the other process has acknowledged it, the process is reported as unresponsive.
//
// Owner: the Host. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "bulkhead/abi/ext/policy.h"
#include "link/channel.hpp"

namespace bulkhead::link {

// Events for the router. They are never called from inside a table function.
class PolicyEvents {
 public:
  virtual ~PolicyEvents() = default;
  virtual void policy_decided(std::uint64_t exchange, const bh_verdict &verdict) = 0;
  virtual void policy_refused(std::uint64_t exchange, std::string_view why) = 0;
  virtual void policy_filtered(std::uint64_t question, bool listed) = 0;
  virtual void policy_changed() = 0;  // the rules or the result of needs() have changed
  // Reports a running process that is unresponsive or has violated the protocol.
  virtual void process_unhealthy(const std::string &compartment) = 0;
};

class PolicyClientStub {
 public:
  // In `limits`, message_bytes limits the size of a text, and write_queue_bytes limits the size of
  // the requests that wait for the other process.
  PolicyClientStub(Reactor &reactor, std::string compartment, const bh_limits &limits,
                   PolicyEvents &events);
  ~PolicyClientStub();
  PolicyClientStub(const PolicyClientStub &) = delete;
  PolicyClientStub &operator=(const PolicyClientStub &) = delete;

  // Connects a started or restarted process.
  void attach(OwnedFd trunk);
  // Called if the process will not be restarted. Requests are refused with this reason until the
  // next attach().
  void give_up(std::string reason);
  // Called when the router has stopped waiting for this answer. `late` is true if the request timed
  // out.
  void unanswered(std::uint64_t number, bool late);

  // Returns the table. The table's `self` is this PolicyClientStub.
  static const bh_policy &table() noexcept;
  // Returns true if no process of this policy has yet reported that it is ready or has failed.
  bool is_awaited() const noexcept { return !ready_ && failure_.empty(); }
  // Returns the reason why all requests are refused. Empty if requests are accepted or the state is
  // unknown.
  const std::string &failure() const noexcept { return failure_; }

 private:
  struct Receiver;
  friend struct PolicyClientStubFunctions;

  struct Pending {
    bool filter = false;
    bool seen = false;  // acknowledged by the plugin's process
  };
  struct Held {
    Frame frame;
    std::string head, text;
    std::uint32_t event = BH_EVENT_CALL;
  };

  bh_status ask(Frame frame, const bh_policy_request &request, bh_str text, bh_error *error);
  bool send(const Frame &frame, std::string_view head, std::string_view text);
  void send_held();
  bool judges(std::uint32_t event) const noexcept;
  void on_frame(const Frame &frame, std::string_view payload);
  bool on_verdict(const Frame &frame, std::string_view payload);
  void report_unhealthy(std::string_view why);
  void lost(std::string_view why);
  void refuse_pending(std::string_view why);

  Reactor &reactor_;
  const std::string compartment_;
  const bh_limits &limits_;
  PolicyEvents &events_;
  const std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<Channel> trunk_;
  bool ready_ = false;     // the process has reported its needs
  bool was_lost_ = false;  // an earlier process exited
  // All bits are set until the process has reported its needs.
  std::uint32_t needs_ = BH_POLICY_READS_ARGUMENTS | BH_POLICY_READS_RESULTS |
                         BH_POLICY_FILTERS_LISTS | BH_POLICY_DECIDES | BH_POLICY_READS_DEFINITION |
                         BH_POLICY_JUDGES_INPUT | BH_POLICY_JUDGES_NOTIFICATIONS;
  std::string failure_;
  std::unordered_map<std::uint64_t, Pending> pending_;
  std::deque<Held> held_;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace bulkhead::link
