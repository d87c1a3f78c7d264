#include "route/opening.hpp"

namespace bulkhead {

Opening::Step Opening::refused(std::uint64_t exchange, Error error, Refusal why) {
  Attempt &attempt = attempts_[attempts_[1].exchange == exchange ? 1 : 0];
  attempt.ended = true;
  attempt.error = std::move(error);
  if (why != Refusal::no_generation) certain_ = false;
  if (other_than(exchange) != 0) return Step::wait;
  const bool more = sent_ == 1 && second() && why != Refusal::connection;
  return more ? Step::send : Step::fail;
}

std::uint64_t Opening::other_than(std::uint64_t exchange) const noexcept {
  for (const Attempt &attempt : attempts_) {
    if (attempt.exchange != 0 && attempt.exchange != exchange && !attempt.ended) {
      return attempt.exchange;
    }
  }
  return 0;
}

// If both requests were sent, reports the error from initialize, because it describes the server's
// problem better.
Error Opening::error() const {
  const Attempt &last = attempts_[sent_ - 1];
  if (sent_ == 1) return last.error;
  return attempts_[attempts_[0].edge->stateless() ? 1 : 0].error;
}

}  // namespace bulkhead
