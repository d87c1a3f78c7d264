// Validates large rewritten arguments and results on the thread pool. They must be valid JSON
// without duplicate members. Owner: the Host. Must be used on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "reactor/reactor.hpp"
#include "route/gate.hpp"

namespace bulkhead {

class RewriteChecks {
 public:
  // Maximum total size of the data that is queued or being checked.
  static constexpr std::size_t most_bytes = std::size_t{256} << 20;

  // Called on the reactor thread, once for each check. Not called after the destructor has run.
  using Found =
      std::function<void(std::uint64_t exchange, Gate::Decision decision, const void *who)>;
  RewriteChecks(Reactor &reactor, Found found);
  ~RewriteChecks();
  RewriteChecks(const RewriteChecks &) = delete;
  RewriteChecks &operator=(const RewriteChecks &) = delete;

  // Starts a check. Returns a pending decision, or a refusal if too much data is queued or the
  // thread pool's queue is full. `who` identifies the policy and is passed to `Found`.
  Gate::Decision begin(std::uint64_t exchange, Gate::Decision rewrite, const void *who);

 private:
  struct State;
  struct Check;

  Reactor &reactor_;
  const std::shared_ptr<State> state_;  // tells running checks whether this object still exists
};

}  // namespace bulkhead
