#include "route/held_answers.hpp"

#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/scan.hpp"
#include "route/json_rpc.hpp"
#include "route/protocol.hpp"

namespace bulkhead {
namespace {

constexpr std::uint64_t commit_ns = std::uint64_t{BH_TELEMETRY_COMMIT_MS} * 1'000'000u;

// Returns the error that the client receives instead of the response.
std::string withheld_text(std::string_view answer, bool may_have_run) {
  mcp::Scan scan;
  mcp::ScanError error;
  const bool read = mcp::scan(answer, &scan, &error);
  const std::string_view what =
      may_have_run ? "the request may have run, but the gateway could not record it within "
                   : "no server has run the request, and the gateway could not record it within ";
  return error_message(read ? scan.id.in(answer) : std::string_view(), code::internal_error,
                       std::string(what) + std::to_string(BH_TELEMETRY_COMMIT_MS) +
                           " ms, so the response was withheld");
}

}  // namespace

HeldAnswers::HeldAnswers(Recorder &recorder, Reactor &reactor, Release release)
    : recorder_(recorder), reactor_(reactor), release_(std::move(release)) {}

HeldAnswers::~HeldAnswers() {
  reactor_.forget(this);
}

// Returns true if a response must be held. A response that follows a held response is also held,
// because responses must stay in order.
bool HeldAnswers::must_hold() const {
  return !held_.empty() || !recorder_.is_committed(recorder_.barrier());
}

void HeldAnswers::hold(const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
                       std::uint32_t http_status, bool may_have_run) {
  Held held{recorder_.barrier(), reply,      {},          http_status,
            reactor_.now_ns(),   count != 0, may_have_run};
  for (std::uint32_t i = 0; i < count; ++i) held.text.append(bh::view(parts[i]));
  bytes_ += held.text.size();
  held_.push_back(std::move(held));
  if (timer_ == 0) start_timer();
}

HeldAnswers::Held HeldAnswers::take() {
  Held held = std::move(held_.front());
  held_.pop_front();
  bytes_ -= held.text.size();
  return held;
}

void HeldAnswers::release(const Held &held, bool withheld) const {
  const bh_str part = bh::str(held.text);
  release_(held.reply, &part, held.has_text ? 1 : 0, held.http_status, withheld);
}

void HeldAnswers::release_committed() {
  while (!held_.empty() && recorder_.is_committed(held_.front().below)) release(take(), false);
}

void HeldAnswers::start_timer() {
  timer_ = reactor_.timer_start(this, BH_TELEMETRY_COMMIT_MS / 10,
                                bh::callback(this, [](HeldAnswers &self) {
                                  self.timer_ = 0;
                                  self.expire();
                                  if (!self.held_.empty()) self.start_timer();
                                }));
}

void HeldAnswers::expire() {
  while (!held_.empty() && reactor_.now_ns() - held_.front().since_ns >= commit_ns) {
    Held held = take();
    if (held.has_text) held.text = withheld_text(held.text, held.may_have_run);
    release(held, held.has_text);
  }
}

}  // namespace bulkhead
