// Validates large texts that policies return as replacements for arguments or results, on the pool:
// valid JSON without duplicate members. Owner: the Host. Thread: [io].
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
  // Limit of all texts that are checked or wait for it, in bytes.
  static constexpr std::size_t most_bytes = std::size_t{256} << 20;

  // Called on the loop, once per check; not after the destructor.
  using Found =
      std::function<void(std::uint64_t exchange, Gate::Decision decision, const void *who)>;
  RewriteChecks(Reactor &reactor, Found found);
  ~RewriteChecks();
  RewriteChecks(const RewriteChecks &) = delete;
  RewriteChecks &operator=(const RewriteChecks &) = delete;

  // Returns pending, or a refusal if too much waits. `who`: the policy, passed to `Found`.
  Gate::Decision begin(std::uint64_t exchange, Gate::Decision rewrite, const void *who);

 private:
  struct State;
  struct Check;

  Reactor &reactor_;
  const std::shared_ptr<State> state_;  // running checks test whether it still exists
};

}  // namespace bulkhead
