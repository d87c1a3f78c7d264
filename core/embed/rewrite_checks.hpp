// Validates large rewritten arguments or results on the thread pool. Each must be valid JSON
// without duplicate members. Owner: the Host. Runs on the reactor thread.
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
  // Limits the total bytes of all texts that are pending or being checked.
  static constexpr std::size_t most_bytes = std::size_t{256} << 20;

  // Called on the reactor thread, once per check, but never after the destructor has run.
  using Found =
      std::function<void(std::uint64_t exchange, Gate::Decision decision, const void *who)>;
  RewriteChecks(Reactor &reactor, Found found);
  ~RewriteChecks();
  RewriteChecks(const RewriteChecks &) = delete;
  RewriteChecks &operator=(const RewriteChecks &) = delete;

  // Returns pending, or a refusal if too much data is pending. `who` is the policy and is passed to
  // `Found`.
  Gate::Decision begin(std::uint64_t exchange, Gate::Decision rewrite, const void *who);

 private:
  struct State;
  struct Check;

  Reactor &reactor_;
  const std::shared_ptr<State> state_;  // shows running checks whether this object still exists
};

}  // namespace bulkhead
