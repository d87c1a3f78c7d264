// Replaces the processes of policies together: connects to the new ones, and moves the states of
// the former ones to them (bh.state/1). The caller then uses or discards all of them.
//
// If a state is not moved in time, the former processes continue, and the attempt is repeated.
//
// Owned by the Host. All functions must be called on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "link/policy_client_stub.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead {

class PolicyExchange {
 public:
  static constexpr unsigned max_attempts = 5;
  static constexpr std::uint64_t pause_ms = 200;  // between two attempts

  // The policy's client stub must outlive the exchange.
  struct Next {
    link::PolicyClientStub *stub;
    OwnedFd trunk;
  };

  explicit PolicyExchange(Reactor &reactor) : reactor_(reactor) {}
  ~PolicyExchange() { reactor_.forget(this); }
  PolicyExchange(const PolicyExchange &) = delete;
  PolicyExchange &operator=(const PolicyExchange &) = delete;

  bool in_progress() const noexcept { return !stubs_.empty(); }
  // Calls `done` once. After success, use() or discard() must be called before the next event is
  // handled, because requests are queued until then. After an error, the former processes continue.
  void prepare(std::vector<Next> next, std::function<void(Result<void>)> done);
  void use();
  void discard();

 private:
  using Step = void (PolicyExchange::*)();

  void begin(Step step);
  void step_done(const Result<void> &result);
  void move_states();
  void on_moved();
  void finish(Result<void> result);

  Reactor &reactor_;
  std::vector<link::PolicyClientStub *> stubs_;
  std::function<void(Result<void>)> done_;
  Step next_step_ = nullptr;  // called when all policies have completed the current step
  std::size_t waiting_ = 0;   // policies that have not completed it
  Result<void> outcome_;      // the first error of the current step
  unsigned attempts_ = 0;
};

}  // namespace bulkhead
