// Looks at large texts that policies have put in the place of arguments or results, on the pool:
// are they valid JSON, without duplicate members? Owner: the Host. Thread: [io].
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
  // Bytes of all texts that are looked at or wait for it.
  static constexpr std::size_t most_bytes = std::size_t{256} << 20;

  // Called on the loop, once for each check that was begun; not after the end of this.
  using Found =
      std::function<void(std::uint64_t exchange, Gate::Decision decision, const void *who)>;
  RewriteChecks(Reactor &reactor, Found found);
  ~RewriteChecks();
  RewriteChecks(const RewriteChecks &) = delete;
  RewriteChecks &operator=(const RewriteChecks &) = delete;

  // pending, or a refusal: too much waits. `who`: the policy, handed back.
  Gate::Decision begin(std::uint64_t exchange, Gate::Decision rewrite, const void *who);

 private:
  struct State;
  struct Check;

  Reactor &reactor_;
  const std::shared_ptr<State> state_;  // checks under way look whether it is still there
};

}  // namespace bulkhead
