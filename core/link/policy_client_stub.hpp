// The client stub of a policy link: presents a policy in another process to the router. The policy
// then decides every request asynchronously.
//
// If the process fails in any way, requests are rejected. While a process is starting, requests are
// queued; after a process was lost, they are rejected until the next attach(). If a request times
// out and the process has not even acknowledged it, the process is reported as unresponsive.
//
// If a second process is attached while the first one decides, each request goes to one process,
// which also answers it. In a hot swap, the first process receives all requests until the second
// one has reported its needs. In a reload, it receives no more requests, because its rules are not
// those of the profile.
//
// Owned by the Host. All functions must be called on the reactor thread.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bulkhead/abi/ext/policy.h"
#include "link/channel.hpp"

namespace bulkhead::link {

// Events for the router. Not called inside table functions.
class PolicyEvents {
 public:
  virtual ~PolicyEvents() = default;
  virtual void policy_decided(std::uint64_t exchange, const bh_verdict &verdict) = 0;
  virtual void policy_refused(std::uint64_t exchange, std::string_view why) = 0;
  virtual void policy_filtered(std::uint64_t question, bool listed) = 0;
  virtual void policy_changed() = 0;  // the rules or the needs have changed
  // Called if the process is running but is unresponsive or has violated the protocol.
  virtual void process_unhealthy(const std::string &compartment) = 0;
};

class PolicyClientStub {
 public:
  // limits.message_bytes limits the size of each message, and limits.write_queue_bytes the total
  // size of the messages that are queued for the compartment's process. `limits` and `events` must
  // outlive this object.
  PolicyClientStub(Reactor &reactor, std::string compartment, const bh_limits &limits,
                   PolicyEvents &events);
  ~PolicyClientStub();
  PolicyClientStub(const PolicyClientStub &) = delete;
  PolicyClientStub &operator=(const PolicyClientStub &) = delete;

  // Connects to a process that has been started. It replaces the current process when it has
  // reported the policy's needs or, if `needs` has a value, at once.
  void attach(OwnedFd trunk, std::optional<std::uint32_t> needs = {});
  // Must be called if the process will not be restarted. Requests are rejected with `reason` until
  // the next attach().
  void give_up(std::string reason);
  // Must be called when the router stops waiting for a request. `late` is true if the request timed
  // out.
  void unanswered(std::uint64_t number, bool late);

  // Returns a table whose `self` is a PolicyClientStub.
  static const bh_policy &table() noexcept;
  // Returns true while the policy is neither ready nor known to have failed.
  bool is_awaited() const noexcept { return !ready_ && failure_.empty(); }
  // Returns the reason why requests are rejected. Returns an empty string if they are accepted or
  // the process's state is unknown.
  const std::string &failure() const noexcept { return failure_; }

 private:
  struct Receiver;
  friend struct PolicyClientStubFunctions;

  struct Pending {
    bool filter = false;
    bool seen = false;                 // acknowledged by the other process
    const Channel *channel = nullptr;  // to the process that decides; null while it is queued
  };
  struct Held {
    Frame frame;
    std::string head, text;
    std::uint32_t event = BH_EVENT_CALL;
    std::uint32_t needs = 0;  // what the policy was assumed to need
  };

  bh_status ask(Frame frame, const bh_policy_request &request, bh_str text, bh_error *error);
  bool send(const Frame &frame, std::string_view head, std::string_view text);
  void send_held();
  std::unique_ptr<Channel> channel_to(OwnedFd trunk);
  void on_frame(Channel &channel, const Frame &frame, std::string_view payload);
  void on_answer(Channel &channel, const Frame &frame, std::string_view payload);
  void on_state(Channel &channel, const Frame &frame, std::string_view payload);
  bool on_verdict(Channel &channel, const Frame &frame, std::string_view payload);
  void use_next();
  void report_unhealthy(Channel &channel, std::string_view why);
  void lost(Channel &channel, std::string_view why);
  void refuse_sent(const Channel *to, std::string_view why);
  void refuse_all(std::string_view why);
  void refuse(const std::vector<std::uint64_t> &numbers, std::string_view why);
  bool wants(const Held &held) const noexcept;

  Reactor &reactor_;
  const std::string compartment_;
  const bh_limits &limits_;
  PolicyEvents &events_;
  const std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<Channel> trunk_;
  std::unique_ptr<Channel> next_;  // to a process that has not reported its needs yet
  // To processes that were replaced and still have requests to answer, oldest first.
  static constexpr std::size_t max_retired = 4;
  std::deque<std::unique_ptr<Channel>> retired_;
  bool ready_ = false;     // the process has reported its needs
  bool was_lost_ = false;  // an earlier process was lost: it exited, was unhealthy or was replaced
  // Until a process has reported the policy's needs, the policy is assumed to need everything.
  std::uint32_t needs_ = BH_POLICY_READS_ARGUMENTS | BH_POLICY_READS_RESULTS |
                         BH_POLICY_FILTERS_LISTS | BH_POLICY_DECIDES | BH_POLICY_READS_DEFINITION |
                         BH_POLICY_JUDGES_INPUT | BH_POLICY_JUDGES_NOTIFICATIONS;
  std::string failure_;
  std::unordered_map<std::uint64_t, Pending> pending_;
  std::deque<Held> held_;
  std::uint64_t held_bytes_ = 0;
};

}  // namespace bulkhead::link
