// Forwards requests about approvals between the service socket and the endpoint, without parsing
// them.
#include <utility>

#include "supervisor/supervisor_child.hpp"

namespace bulkhead::program {

void Supervisor::ask_approvals(std::uint32_t request, std::string_view value,
                               std::function<void(Result<std::string>)> done) {
  const Child &endpoint = *children_.front();
  if (!endpoint.ready || stopping_) {
    return done(fail(BH_E_UNAVAILABLE,
                     "the endpoint is not running; calls that were waiting there are rejected"));
  }
  if (approvals_asked_.size() >= max_approvals_asked) {
    return done(fail(BH_E_LIMIT, "too many approval requests are pending"));
  }
  link::Frame frame;
  frame.kind = control::approvals;
  frame.exchange = ++last_approvals_;
  frame.code = request;
  if (endpoint.control->send(frame, value) != BH_OK) {
    return done(fail(BH_E_UNAVAILABLE, "the endpoint is busy"));
  }
  ApprovalJob &job = approvals_asked_[frame.exchange];
  job = {this, frame.exchange, 0, std::move(done)};
  job.timer =
      reactor_->timer_start(this, max_approvals_ms, bh::callback(&job, [](ApprovalJob &late) {
                              late.timer = 0;
                              late.supervisor->finish_approvals(
                                  late.number, fail(BH_E_UNAVAILABLE, "the endpoint timed out"));
                            }));
}

void Supervisor::on_approvals(const link::Frame &frame, std::string_view payload) {
  const auto status = static_cast<bh_status>(frame.code);
  if (status == BH_OK) return finish_approvals(frame.exchange, std::string(payload));
  finish_approvals(frame.exchange,
                   fail(status, std::string(payload.substr(0, control::max_log_bytes))));
}

void Supervisor::finish_approvals(std::uint64_t number, Result<std::string> answer) {
  auto job = approvals_asked_.extract(number);
  if (job.empty()) return;
  reactor_->timer_cancel(job.mapped().timer);
  job.mapped().done(std::move(answer));
}

// Fails all pending requests because the endpoint has exited.
void Supervisor::refuse_approvals() {
  while (!approvals_asked_.empty()) {
    finish_approvals(
        approvals_asked_.begin()->first,
        fail(BH_E_UNAVAILABLE,
             "the endpoint process exited; calls that were waiting for approval are rejected"));
  }
}

}  // namespace bulkhead::program
