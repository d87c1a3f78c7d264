#include "embed/policy_exchange.hpp"

#include <utility>

#include "bulkhead/cpp/callback.hpp"

namespace bulkhead {

void PolicyExchange::prepare(std::vector<Next> next, std::function<void(Result<void>)> done) {
  if (in_progress()) return done(fail(BH_E_LIMIT, "policies are being replaced already"));
  for (const Next &one : next) stubs_.push_back(one.stub);
  done_ = std::move(done);
  attempts_ = 0;
  begin(&PolicyExchange::move_states);
  for (Next &one : next) {
    one.stub->connect_next(std::move(one.trunk),
                           [this](const Result<void> &result) { step_done(result); });
  }
  step_done({});
}

// Begins a step. It ends when step_done() was called for each policy and once by the caller, which
// prevents that the step ends while the caller still starts it.
void PolicyExchange::begin(Step step) {
  next_step_ = step;
  waiting_ = stubs_.size() + 1;
  outcome_ = {};
}

void PolicyExchange::step_done(const Result<void> &result) {
  if (!result && outcome_) outcome_ = result;
  if (--waiting_ > 0) return;
  (this->*next_step_)();
}

void PolicyExchange::move_states() {
  if (!outcome_) return finish(std::move(outcome_));
  ++attempts_;
  begin(&PolicyExchange::on_moved);
  const auto stubs = stubs_;
  for (link::PolicyClientStub *stub : stubs) {
    stub->move_state([this](const Result<void> &result) { step_done(result); });
  }
  step_done({});
}

void PolicyExchange::on_moved() {
  const bool late = !outcome_ && outcome_.error().code == BH_E_TIMEOUT;
  if (!late || attempts_ >= max_attempts) return finish(std::move(outcome_));
  for (link::PolicyClientStub *stub : stubs_) stub->undo_move();
  begin(&PolicyExchange::move_states);
  waiting_ = 1;
  reactor_.timer_start(this, pause_ms,
                       bh::callback(this, [](PolicyExchange &self) { self.step_done({}); }));
}

void PolicyExchange::finish(Result<void> result) {
  if (!result) discard();
  std::exchange(done_, nullptr)(std::move(result));
}

void PolicyExchange::use() {
  for (link::PolicyClientStub *stub : std::exchange(stubs_, {})) stub->use_next();
}

void PolicyExchange::discard() {
  for (link::PolicyClientStub *stub : std::exchange(stubs_, {})) stub->discard_next();
}

}  // namespace bulkhead
