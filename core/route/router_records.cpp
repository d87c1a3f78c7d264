// What goes on record, and where a telemetry plugin commits, what waits for that: calls before they
// are sent to their server, and answers before they leave.
#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/splice.hpp"

namespace bulkhead {
namespace {

constexpr std::uint64_t commit_ns = std::uint64_t{BH_TELEMETRY_COMMIT_MS} * 1'000'000u;

std::string within() {
  return " within " + std::to_string(BH_TELEMETRY_COMMIT_MS) + " ms";
}

std::string_view status_of(ApprovalEnd end) {
  return end == ApprovalEnd::allowed ? std::string_view("approved") : to_string(end);
}

void add_member(std::string *json, std::string_view name, std::string_view value) {
  *json += json->empty() ? '{' : ',';
  json->append("\"").append(name).append("\":");
  mcp::append_quoted(json, value);
}

}  // namespace

// ---- records of what has no exchange ---------------------------------------------------------

void Router::record_message(const Session *from, bh_session handle, std::string_view message,
                            const mcp::Scan &scan, std::uint64_t start_ns,
                            const Recorder::End &end) {
  if (recorder_.active()) recorder_.record({from, handle, message, &scan, start_ns}, end);
}

// The answer to the request that is being handled, if it is that one's.
void Router::record_answer(const ReplyTo &reply, std::string_view id_token, std::uint32_t outcome,
                           std::string_view error, std::string_view response) {
  Incoming *in = incoming_;
  if (in == nullptr || in->done || in->reply.session != reply.session ||
      in->reply.stream != reply.stream || in->reply.batch != reply.batch ||
      in->scan.id.in(in->message) != id_token) {
    return;
  }
  in->done = true;
  record_message(session(reply.session), reply.session, in->message, in->scan, in->start_ns,
                 {outcome, reactor_.now_ns(), response.size(), {}, error, response});
}

// Of this message; null: it does not come from a client just now, or is on record already.
Router::Incoming *Router::incoming(std::string_view message) noexcept {
  const bool is_it = incoming_ != nullptr && incoming_->message.data() == message.data();
  return is_it && !incoming_->done ? incoming_ : nullptr;
}

void Router::record_cancelled(const View::Waiter &waiter, std::string_view why) {
  mcp::Scan scan;
  mcp::ScanError error;
  if (!recorder_.active() || !mcp::scan(waiter.message, &scan, &error)) return;
  record_message(session(waiter.reply.session), waiter.reply.session, waiter.message, scan,
                 waiter.start_ns, {BH_OUTCOME_CANCELLED, reactor_.now_ns(), 0, {}, why, {}});
}

// ---- records of calls ------------------------------------------------------------------------

void Router::put_on_record(Exchange &e, const Recorder::End &end) {
  if (!recorder_.active() || e.purpose != Purpose::call || e.account.recorded) return;
  recorder_.record(e, end);
  e.account.recorded = true;
}

void Router::record_question(const Exchange &e, const ApprovalQuestion &question,
                             const ApprovalOutcome *outcome) {
  if (!recorder_.wants_events()) return;
  std::string detail;
  add_member(&detail, "id", question.id);
  add_member(&detail, "status", outcome == nullptr ? "pending" : status_of(outcome->end));
  add_member(&detail, "digest", question.digest);
  const bool answered = outcome != nullptr && outcome->surface != ApprovalSurface::none;
  if (answered) add_member(&detail, "surface", to_string(outcome->surface));
  if (outcome != nullptr && outcome->end == ApprovalEnd::allowed) {
    add_member(&detail, "scope", to_string(outcome->scope));
  }
  recorder_.event(e, BH_RECORD_APPROVAL, detail + "}");
}

void Router::tools_event(bh_call call, std::uint32_t kind, std::string_view detail) {
  Exchange *e = exchanges_.get(call);
  if (e == nullptr || e->lane == nullptr || e->lane->upstream().tools == nullptr) return;
  if (!recorder_.wants_events()) return;
  const bool known = kind >= BH_RECORD_NET && kind <= BH_RECORD_SNAPSHOT;
  const bool fits = detail.size() <= BH_EVENT_BYTES && detail.starts_with('{');
  if (!known || !fits || !mcp::valid_json(detail)) {
    ++counters_.dropped_details;
    return log(BH_LOG_PLUGIN_MISBEHAVES,
               "\"" + e->server + "\" says something for the record that is no such thing");
  }
  if (e->account.events++ >= BH_EVENTS_PER_CALL) {
    ++counters_.dropped_details;
    return;
  }
  recorder_.event(*e, kind, detail);
}

// ---- calls that wait for their intents -------------------------------------------------------

// False: nobody wants that, the call goes on at once. True: it waits, or has been refused.
bool Router::waits_for_intent(Exchange &e, std::string_view message, const Target &target,
                              std::string_view rewritten) {
  if (!recorder_.commits()) return false;
  const std::size_t bytes = message.size() + rewritten.size();
  if (may_wait(bytes)) recorder_.intent(e);
  if (e.account.intent == 0) {
    refuse_unrecorded(e,
                      "too much waits to be put on record (limits.policy_waiting_bytes); the call "
                      "has not run");
    return true;
  }
  waiting_bytes_ += bytes;
  intents_.emplace_back(recorder_.barrier(), e.id);
  unwritten_.emplace(e.id, Unwritten{std::string(message), target, std::string(rewritten)});
  arm(e, BH_TELEMETRY_COMMIT_MS);
  return true;
}

std::optional<Router::Unwritten> Router::take_unwritten(std::uint64_t exchange) {
  auto node = unwritten_.extract(exchange);
  if (node.empty()) return std::nullopt;
  waiting_bytes_ -= node.mapped().message.size() + node.mapped().rewritten.size();
  return std::move(node.mapped());
}

// True: its intent was not committed in time, and the client has been told.
bool Router::intent_expired(Exchange &e) {
  if (!take_unwritten(e.id)) return false;
  refuse_unrecorded(e,
                    "the gateway could not put the call on record" + within() + "; it has not run");
  return true;
}

void Router::send_recorded(std::uint64_t exchange) {
  auto call = take_unwritten(exchange);
  Exchange *e = exchanges_.get(exchange);
  if (!call || e == nullptr) return;
  mcp::Scan scan;
  mcp::ScanError error;
  if (!mcp::scan(call->message, &scan, &error)) {
    return fail_exchange(*e, code::internal_error, error.what, BH_OUTCOME_ERROR);
  }
  // The server has its whole time, however long the disk took.
  arm(*e, call->target.lane->upstream().timeout_ms(scan.method, e->name));
  send_call(*e, call->message, scan, call->target, call->rewritten);
}

// ---- answers that wait for their records -----------------------------------------------------

void Router::hold_answer(const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
                         std::uint32_t http_status, bool may_have_run) {
  HeldAnswer held{recorder_.barrier(), reply,      {},          http_status,
                  reactor_.now_ns(),   count == 0, may_have_run};
  for (std::uint32_t i = 0; i < count; ++i) held.text.append(bh::view(parts[i]));
  held_bytes_ += held.text.size();
  held_.push_back(std::move(held));
  if (held_timer_ == 0) start_held_timer();
}

void Router::start_held_timer() {
  held_timer_ = reactor_.timer_start(
      this, BH_TELEMETRY_COMMIT_MS / 10,
      [](void *arg) {
        auto &self = *static_cast<Router *>(arg);
        self.held_timer_ = 0;
        self.expire_held();
        if (!self.held_.empty()) self.start_held_timer();
      },
      this);
}

Router::HeldAnswer Router::take_held() {
  HeldAnswer held = std::move(held_.front());
  held_.pop_front();
  held_bytes_ -= held.text.size();
  return held;
}

void Router::let_go(const HeldAnswer &held) {
  const bh_str part = bh::str(held.text);
  send(held.reply, BH_OUT_ANSWER, &part, held.empty ? 0 : 1, held.http_status);
}

// What was committed may go on.
void Router::records_committed() {
  while (!intents_.empty() && recorder_.is_committed(intents_.front().first)) {
    const std::uint64_t exchange = intents_.front().second;
    intents_.pop_front();
    send_recorded(exchange);
  }
  if (held_.empty()) return;
  while (!held_.empty() && recorder_.is_committed(held_.front().below)) let_go(take_held());
  check_idle();
}

// An error stands for an answer whose record was not committed in time.
void Router::expire_held() {
  while (!held_.empty() && reactor_.now_ns() - held_.front().since_ns >= commit_ns) {
    HeldAnswer held = take_held();
    mcp::Scan scan;
    mcp::ScanError error;
    const bool read = !held.empty && mcp::scan(held.text, &scan, &error);
    if (!held.empty) {
      ++counters_.answers_withheld;
      held.text =
          error_text(read ? scan.id.in(held.text) : std::string_view(), code::internal_error,
                     (held.may_have_run
                          ? "the request may have run, but the gateway could not put it on record"
                          : "no server has run the request, and the gateway could not put it on "
                            "record") +
                         within() + ", so its answer was withheld",
                     {});
    }
    let_go(held);
  }
  check_idle();
}

}  // namespace bulkhead
