// The client stub of a policy link: presents a policy in another process to the router. The policy
// then decides every request asynchronously.
//
// If the process fails in any way, requests are rejected. While a process is starting, requests are
// queued; after a process was lost, they are rejected until the next attach(). If a request times
// out and the process has not even acknowledged it, the process is reported as unresponsive.
//
// A process that replaces another one is connected first (connect_next). If both policies offer
// bh.state/1, move_state() queues all requests, the former process exports its state, and the new
// one imports it. Then all requests go to the new process (use_next), or the former one continues
// (undo_move, discard_next). In this way, each decision is part of the state or made by the new
// process. Without bh.state/1, the former process decides until use_next(), and answers what it has
// received.
//
// Owned by the Host. All functions must be called on the reactor thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/ext/draft/state.h"
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
  // Called if a policy that has state is replaced by one that accepts none. Its state is lost.
  virtual void state_dropped(const std::string &compartment) = 0;
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

  // Connects to a process that has been started. If there is another process, it is disconnected,
  // and its requests are rejected.
  void attach(OwnedFd trunk);

  using Done = std::function<void(Result<void>)>;
  static constexpr std::uint64_t max_connect_ms = 5'000;
  // Connects to the process that replaces the current one. `connected` is called once: when the
  // process has reported its needs, or after at most max_connect_ms. After an error, there is no
  // next process.
  void connect_next(OwnedFd trunk, Done connected);
  // Moves the state to the next process if both policies offer bh.state/1. `moved` is called once,
  // after at most BH_STATE_TIME_MS, possibly inside this function. After success, one of the
  // following functions must be called; until then, requests are queued if a state was moved. After
  // an error (BH_E_TIMEOUT if the time has passed), the current process continues, and the next one
  // stays connected.
  void move_state(Done moved);
  void undo_move();  // the current process continues; the next one stays connected
  // Replaces BH_STATE_TIME_MS. For tests that must not depend on the speed of the machine.
  void set_state_time(std::uint64_t ms) noexcept { state_time_ms_ = ms; }
  // From now on, the next process receives all requests. Must be called only after move_state().
  void use_next();
  // Disconnects the next process, if there is one. The current process continues. `connected` and
  // `moved` are not called any longer.
  void discard_next();

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
    std::uint32_t needs = 0;  // what the policy needed, which determines the request's data
  };
  struct Held {
    Frame frame;
    std::string head, text;
    std::uint32_t event = BH_EVENT_CALL;
    std::uint32_t needs = 0;  // what the policy was assumed to need
  };

  // The process that replaces the current one.
  struct Next {
    enum class Step : std::uint8_t { connecting, connected, exporting, importing, moved };
    std::unique_ptr<Channel> channel;
    Done done;  // null unless connect_next() or move_state() is in progress
    Step step = Step::connecting;
    std::uint32_t needs = 0;
    bool has_state = false;
    bool lost = false;
    std::uint64_t timer = 0;
    std::uint32_t added_needs = 0;  // see move_state()
  };

  bh_status ask(Frame frame, const bh_policy_request &request, bh_str text, bh_error *error);
  bool sends() const noexcept { return ready_ && !paused_; }
  bool send(const Frame &frame, std::string_view head, std::string_view text);
  void send_held();
  void deliver(const Held &held);
  std::unique_ptr<Channel> channel_to(OwnedFd trunk);
  void on_frame(Channel &channel, const Frame &frame, std::string_view payload);
  void on_next_frame(const Frame &frame, std::string_view payload);
  void on_answer(Channel &channel, const Frame &frame, std::string_view payload);
  void on_state(Channel &channel, const Frame &frame, std::string_view payload);
  bool on_verdict(Channel &channel, const Frame &frame, std::string_view payload);
  bool on_returned(Channel &channel, const Frame &frame, std::string_view payload);
  void on_exported(const Frame &frame, std::string_view payload);
  void on_imported(const Frame &frame, std::string_view payload);
  void next_lost(std::string_view why);
  void fail_next(bh_status status, std::string_view why);
  void next_broken(bh_status status, const std::string &why);
  void finish_step(Next::Step step, Result<void> result);
  void report_unhealthy(Channel &channel, std::string_view why);
  void lost(Channel &channel, std::string_view why);
  void refuse_sent(const Channel *to, std::string_view why);
  void refuse_all(std::string_view why);
  void refuse(const std::vector<std::uint64_t> &numbers, std::string_view why);
  bool wants(const Held &held) const noexcept;
  bool is_retired(const Channel &channel) const noexcept;

  Reactor &reactor_;
  const std::string compartment_;
  const bh_limits &limits_;
  PolicyEvents &events_;
  const std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<Channel> trunk_;
  std::unique_ptr<Next> next_;
  std::uint64_t state_time_ms_ = BH_STATE_TIME_MS;
  std::uint64_t exports_ = 0;  // the number of the last policy_export and policy_import
  // To processes that were replaced and still have requests to answer, oldest first.
  static constexpr std::size_t max_retired = 4;
  std::deque<std::unique_ptr<Channel>> retired_;
  bool ready_ = false;      // the process has reported its needs
  bool has_state_ = false;  // its policy offers bh.state/1
  bool paused_ = false;     // requests are queued while the state is moved
  bool was_lost_ = false;   // an earlier process was lost: it exited, was unhealthy or was replaced
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
