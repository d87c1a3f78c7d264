// What goes on record, and where a telemetry plugin commits, what waits for that: calls before they
// are sent to their server, and answers before they leave.
#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/splice.hpp"

namespace bulkhead {
namespace {

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
  const bool fits = waiting_bytes_.take(bytes);
  if (fits) recorder_.intent(e);
  if (e.account.intent == 0) {
    if (fits) waiting_bytes_.give_back(bytes);
    refuse_unrecorded(e,
                      "too much waits to be put on record (limits.policy_waiting_bytes); the call "
                      "has not run");
    return true;
  }
  intents_.emplace_back(recorder_.barrier(), e.id);
  unwritten_.emplace(e.id, Unwritten{std::string(message), target, std::string(rewritten)});
  arm(e, BH_TELEMETRY_COMMIT_MS);
  return true;
}

std::optional<Router::Unwritten> Router::take_unwritten(std::uint64_t exchange) {
  auto node = unwritten_.extract(exchange);
  if (node.empty()) return std::nullopt;
  waiting_bytes_.give_back(node.mapped().message.size() + node.mapped().rewritten.size());
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

// What was committed may go on.
void Router::records_committed() {
  while (!intents_.empty() && recorder_.is_committed(intents_.front().first)) {
    const std::uint64_t exchange = intents_.front().second;
    intents_.pop_front();
    send_recorded(exchange);
  }
  answers_.records_committed();
}

}  // namespace bulkhead
