#include "embed/rewrite_checks.hpp"

#include <exception>
#include <string>
#include <utility>

namespace bulkhead {

struct RewriteChecks::State {
  Found found;
  std::size_t bytes = 0;
};

struct RewriteChecks::Check {
  std::weak_ptr<State> state;
  std::uint64_t exchange;
  Gate::Decision decision;
  const void *who;
  std::size_t bytes;

  void work() noexcept {
    try {
      Gate::look_at(&decision);
    } catch (const std::exception &) {  // out of memory: the text stays unchecked
    }
  }
  static void done(Check &checked) {
    const std::unique_ptr<Check> check(&checked);
    const auto state = check->state.lock();
    if (state == nullptr) return;
    state->bytes -= check->bytes;
    if (check->decision.unread)
      check->decision = Gate::failed("out of memory while checking the policy's rewrite");
    state->found(check->exchange, std::move(check->decision), check->who);
  }
};

RewriteChecks::RewriteChecks(Reactor &reactor, Found found)
    : reactor_(reactor), state_(std::make_shared<State>(std::move(found))) {}

RewriteChecks::~RewriteChecks() = default;

Gate::Decision RewriteChecks::begin(std::uint64_t exchange, Gate::Decision rewrite,
                                    const void *who) {
  const std::size_t bytes = rewrite.replacement.size();
  if (bytes > most_bytes - state_->bytes) {
    return Gate::failed("more than " + std::to_string(most_bytes >> 20) +
                        " MiB of policy rewrites would be queued for checking; try again later");
  }
  auto check = std::make_unique<Check>(Check{state_, exchange, std::move(rewrite), who, bytes});
  // The work has no owner, so done() is called and frees the check even if this object has been
  // destroyed.
  if (reactor_.run_blocking(nullptr, bh::blocking_work<&Check::work, Check::done>(check.get())) !=
      BH_OK)
    return Gate::failed("the pool for blocking work is full; try again later");
  static_cast<void>(check.release());
  state_->bytes += bytes;
  Gate::Decision pending;
  pending.verdict = Gate::Verdict::pending;
  return pending;
}

}  // namespace bulkhead
