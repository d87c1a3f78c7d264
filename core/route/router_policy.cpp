// Calls and results that a policy judges, at once or later. What it has not judged goes nowhere:
// a call waits before it gets a lane, a result after its lane is done with it.
#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"
#include "route/splice.hpp"

namespace bulkhead {
namespace {

Gate::Decision too_much() {
  return Gate::failed("too much waits for the policy (limits.policy_waiting_bytes)");
}

// Several that ask come as one text, with commas between them. True: each of `now` is in `asked`.
bool has_rules(std::string_view asked, std::string_view now) {
  constexpr std::string_view between = ", ";
  if (now.empty()) return asked.empty();
  const auto one_of = [&](std::string_view rule) {
    for (std::string_view rest = asked;;) {
      const std::size_t end = std::min(rest.find(between), rest.size());
      if (rest.substr(0, end) == rule) return true;
      if (end == rest.size()) return false;
      rest.remove_prefix(end + between.size());
    }
  };
  for (;;) {
    const std::size_t end = std::min(now.find(between), now.size());
    if (!one_of(now.substr(0, end))) return false;
    if (end == now.size()) return true;
    now.remove_prefix(end + between.size());
  }
}

// As it is listed now; empty: it is not (any more).
std::string_view definition_of(const Resolved &resolved, const Lane &lane) {
  const ItemList &list = lane.items(resolved.kind);
  if (resolved.definition_hash == DefinitionHash{} || resolved.item >= list.items.size()) return {};
  const ItemList::Item &item = list.items[resolved.item];
  const bool same = item.hash == resolved.definition_hash;
  return same ? item.raw.in(list.bytes) : std::string_view{};
}

// Its own where it is one, so that clients may go on acting on it.
std::int32_t error_code_of(std::string_view error) {
  const std::string_view token = mcp::member(error, "code");
  std::int32_t out = 0;
  const char *last = token.data() + token.size();
  const auto [end, failed] = std::from_chars(token.data(), last, out);
  return !token.empty() && failed == std::errc{} && end == last ? out : code::internal_error;
}

// A server's error as policies see it, which read results: the message is its text, data its
// structured content. What would have no place there is in it with the whole error.
std::string error_as_result(std::string_view error) {
  const std::string_view message = mcp::member(error, "message"), data = mcp::member(error, "data");
  bool whole = !message.starts_with('"') || (!data.empty() && !data.starts_with('{'));
  mcp::for_each_member(error, &whole, [](void *arg, std::string_view key, std::string_view) {
    std::string scratch;
    const std::string_view name = mcp::unquote(key, &scratch);
    if (name != "code" && name != "message" && name != "data") *static_cast<bool *>(arg) = true;
    return true;
  });
  std::string out = R"({"isError":true,"content":[)";
  out.reserve(out.size() + 2 * error.size() + 96);
  if (message.starts_with('"')) out.append(R"({"type":"text","text":)").append(message).append("}");
  out += ']';
  if (data.starts_with('{')) out.append(R"(,"structuredContent":)").append(data);
  if (whole) out.append(R"(,"error":)").append(error);
  return out + "}";
}

}  // namespace

bh_policy_request Router::policy_request(const Exchange &e) const {
  bh_policy_request request{};
  request.size = sizeof request;
  request.exchange = e.id;
  request.session = e.reply.session;
  if (e.session != nullptr) {
    request.transport = bh::str(e.session->transport);
    request.peer = bh::str(e.session->address);
    request.principal = bh::str(e.session->principal);
    request.session_calls = e.session->calls;
    request.session_age_ns = reactor_.now_ns() - e.session->start_ns;
  }
  request.process_name = bh::str(e.process_name);
  request.method = bh::str(mcp::to_string(e.method));
  request.server = bh::str(e.server);
  request.name = bh::str(e.name);
  return request;
}

// ---- calls -----------------------------------------------------------------------------------

Gate::Decision Router::judge_call(const Exchange &e, std::string_view message,
                                  const mcp::Scan &scan, const Target &target,
                                  std::uint32_t flags) const {
  const std::string_view arguments = scan.arguments.in(message);
  if (gate_.reads_arguments() && !arguments.empty() && mcp::has_duplicate_members(arguments)) {
    return Gate::refusal({}, "arguments hold an object with duplicate members");
  }
  bh_policy_request request = policy_request(e);
  request.flags = flags;
  if (gate_.reads_arguments()) request.arguments = bh::str(arguments);
  if (gate_.reads_definitions()) {
    request.definition = bh::str(definition_of(target.resolved, *target.lane));
  }
  request.meta = bh::str(scan.meta.in(message));
  request.pin = pin_of(target.lane->upstream(), target.resolved.kind, e.name,
                       target.resolved.definition_hash);
  std::string hash;
  if (target.resolved.definition_hash != DefinitionHash{}) {
    hash = to_hex(target.resolved.definition_hash);
    request.definition_hash = bh::str(hash);
  }
  return gate_.decide(request);
}

// False: refused (and answered), or the decision is pending.
bool Router::passes_gate(Exchange &e, std::string_view message, const mcp::Scan &scan,
                         const Target &target, std::string *rewritten) {
  Gate::Decision decision = judge_call(e, message, scan, target);
  note_decision(e, decision);
  switch (decision.verdict) {
    case Gate::Verdict::allow:
      return true;
    case Gate::Verdict::rewrite:
      if (scan.arguments.empty()) {
        refuse(e, Gate::refusal(decision.rule, "there are no arguments to rewrite"));
        return false;
      }
      *rewritten = std::move(decision.replacement);
      return true;
    case Gate::Verdict::pending:
      wait_for_policy(e, {std::string(message), target, false, {}});
      return false;
    default:
      if (decision.asks) return has_approval(e, message, scan, target, decision);
      refuse(e, decision);
      return false;
  }
}

void Router::wait_for_policy(Exchange &e, Undecided call) {
  if (!may_wait(call.message.size())) {
    unanswered(e.id, false);
    return refuse(e, too_much());
  }
  waiting_bytes_ += call.message.size();
  undecided_.emplace(e.id, std::move(call));
  arm(e, limits().policy_timeout_ms);
}

void Router::refuse(Exchange &e, const Gate::Decision &decision) {
  ++counters_.refused_by_policy;
  std::string text = "MCP request blocked by policy";
  if (!decision.rule.empty()) text += " (" + decision.rule + ")";
  if (!decision.reason.empty()) text += ": " + decision.reason;
  const ReplyTo reply = e.reply;
  const std::string id = e.client_id;
  finish(e, BH_OUTCOME_REFUSED, 0, decision.rule, decision.reason);
  answer_error(reply, id, code::invalid_request, text);
}

void Router::call_decided(Exchange &e, const Undecided &call, const Gate::Decision &decision) {
  note_decision(e, decision);
  if (decision.verdict == Gate::Verdict::refuse && !decision.asks) return refuse(e, decision);
  mcp::Scan scan;
  mcp::ScanError error;
  if (!mcp::scan(call.message, &scan, &error)) return refuse(e, Gate::failed(error.what));
  // A person's answer is to the rules that asked: another one asks anew.
  const bool approved = call.approved && has_rules(call.rule, decision.rule);
  if (decision.asks && !approved && !has_approval(e, call.message, scan, call.target, decision)) {
    return;
  }
  if (decision.verdict == Gate::Verdict::rewrite && scan.arguments.empty()) {
    return refuse(e, Gate::refusal(decision.rule, "there are no arguments to rewrite"));
  }
  if (!passes_pins(e, call.target)) return;  // it may be another one by now
  // The server has its whole time, however long the policy took.
  arm(e, call.target.lane->upstream().timeout_ms(scan.method, e.name));
  dispatch(e, call.message, scan, call.target, decision.replacement);
}

// ---- results and errors ----------------------------------------------------------------------

// False: answered otherwise, or the decision is pending.
bool Router::passes_result(Exchange &e, std::string_view message, const mcp::Scan &scan) {
  const bool ok = scan.kind == mcp::Kind::result;
  const std::string_view body = (ok ? scan.result : scan.error).in(message);
  if (mcp::has_duplicate_members(body)) {
    const char *why = "the result holds an object with duplicate members";
    answer_filtered(e, message, scan, Gate::refusal({}, why));
    return false;
  }
  const std::string error = ok ? std::string() : error_as_result(body);
  const Gate::Decision decision = gate_.observe(policy_request(e), ok ? body : error);
  if (decision.verdict == Gate::Verdict::allow) return true;
  if (decision.verdict != Gate::Verdict::pending) {
    answer_filtered(e, message, scan, decision);
    return false;
  }
  if (!may_wait(message.size())) {
    unanswered(e.id, false);
    refuse_result(e, too_much());
    return false;
  }
  waiting_bytes_ += message.size();
  unobserved_.emplace(e.id, Unobserved{std::string(message)});
  // The server is done: its place is free for others, and its end is nothing to this call.
  Lane *lane = e.lane;
  detach(e);
  arm(e, limits().policy_timeout_ms);
  lane->pump();
  if (!draining_.empty()) sweep_later();
  return false;
}

// A policy has looked at the result: it is replaced or withheld, the original never leaves.
void Router::answer_filtered(Exchange &e, std::string_view message, const mcp::Scan &scan,
                             const Gate::Decision &decision) {
  if (scan.kind == mcp::Kind::error) {
    // An error is not rewritten: what a rule would take out of it is withheld with the rest.
    const Gate::Decision refusal =
        decision.verdict == Gate::Verdict::rewrite
            ? Gate::refusal(decision.rule, "an error of the server is not rewritten")
            : decision;
    note_decision(e, refusal);
    return refuse_result(e, refusal, error_code_of(scan.error.in(message)));
  }
  note_decision(e, decision);
  if (decision.verdict != Gate::Verdict::rewrite) return refuse_result(e, decision);
  Splice splice(message);
  splice.replace(scan.id, e.client_id);
  splice.replace(scan.result, decision.replacement);
  const ReplyTo reply = e.reply;
  const std::uint64_t id = e.id;
  const std::string_view result = decision.replacement;
  if (recorder_.commits()) {
    put_on_record(e, {BH_OUTCOME_OK, reactor_.now_ns(), result.size(), decision.rule, {}, result});
  }
  const bh_str *parts = splice.parts();
  answer(reply, parts, splice.count());
  if (Exchange *still = exchanges_.get(id)) {
    finish(*still, BH_OUTCOME_OK, result.size(), decision.rule, {}, result);
    check_idle();
  }
}

void Router::refuse_result(Exchange &e, const Gate::Decision &decision, std::int32_t error_code) {
  ++counters_.refused_by_policy;
  std::string text = "MCP response blocked by policy";
  if (!decision.rule.empty()) text += " (" + decision.rule + ")";
  const ReplyTo reply = e.reply;
  const std::string id = e.client_id;
  const std::string why =
      decision.asks ? "needs approval, which a result cannot wait for" : decision.reason;
  if (!why.empty()) text += ": " + why;
  finish(e, BH_OUTCOME_REFUSED, 0, decision.rule, why);
  answer_error(reply, id, error_code, text);
}

void Router::result_decided(Exchange &e, const Unobserved &result, const Gate::Decision &decision) {
  mcp::Scan scan;
  mcp::ScanError error;
  if (!mcp::scan(result.message, &scan, &error)) return refuse_result(e, Gate::failed(error.what));
  if (decision.verdict == Gate::Verdict::allow) return pass_answer(e, result.message, scan);
  answer_filtered(e, result.message, scan, decision);
}

// For the record: what the policy said of the call, and whatever it changed of the result. Of a
// call that a person was asked about the record says that, unless the rules refuse it by then.
void Router::note_decision(Exchange &e, const Gate::Decision &decision) const {
  if (!recorder_.active() || decision.verdict == Gate::Verdict::pending) return;
  Account &account = e.account;
  if (decision.warned) account.flags |= BH_RECORD_WARNED;
  if (decision.verdict == Gate::Verdict::allow && account.action == BH_VERDICT_ASK) return;
  account.action = decision.action;
  if (decision.verdict == Gate::Verdict::refuse && !decision.asks) {
    account.action = BH_VERDICT_BLOCK;  // the gate itself, too
  }
  account.rule = decision.rule;
  account.reason = decision.reason;
}

// ---- what is pending -------------------------------------------------------------------------

std::vector<std::uint64_t> Router::kept_for(const Lane &lane) const {
  std::vector<std::uint64_t> ids;
  for (const auto *kept : {&undecided_, &unapproved_}) {
    for (const auto &[id, call] : *kept) {
      if (call.target.lane == &lane) ids.push_back(id);
    }
  }
  for (const auto &[id, call] : unwritten_) {
    if (call.target.lane == &lane) ids.push_back(id);
  }
  return ids;
}

bool Router::may_wait(std::size_t bytes) const noexcept {
  return waiting_bytes_ + bytes <= limits().policy_waiting_bytes;
}

std::optional<Router::Undecided> Router::take_undecided(std::uint64_t exchange) {
  auto node = undecided_.extract(exchange);
  if (node.empty()) return std::nullopt;
  waiting_bytes_ -= node.mapped().message.size();
  return std::move(node.mapped());
}

std::optional<Router::Unobserved> Router::take_unobserved(std::uint64_t exchange) {
  auto node = unobserved_.extract(exchange);
  if (node.empty()) return std::nullopt;
  waiting_bytes_ -= node.mapped().message.size();
  return std::move(node.mapped());
}

void Router::policy_decided(std::uint64_t exchange, const Gate::Decision &decision) {
  if (events_.contains(exchange)) return event_decided(exchange, decision);
  Exchange *e = exchanges_.get(exchange);
  if (e == nullptr) return;
  if (const auto call = take_undecided(exchange)) return call_decided(*e, *call, decision);
  if (const auto result = take_unobserved(exchange)) return result_decided(*e, *result, decision);
}

void Router::unanswered(std::uint64_t number, bool late) const {
  if (hooks_.on_unanswered) hooks_.on_unanswered(number, late);
}

// True: it was the policy that did not answer, and the client has been told.
bool Router::policy_timed_out(Exchange &e) {
  const std::uint64_t id = e.id;
  const bool call = take_undecided(id).has_value();
  if (!call && !take_unobserved(id).has_value()) return false;
  ++counters_.policy_timeouts;
  const Gate::Decision decision = Gate::timed_out(e.timeout_ms);
  log(BH_LOG_WARN, decision.reason + ": " + std::string(call ? "a call" : "a result") + " of \"" +
                       e.name + "\" at \"" + e.server + "\" is refused");
  call ? refuse(e, decision) : refuse_result(e, decision);
  unanswered(id, true);
  return true;
}

// The exchange ends for another reason.
void Router::forget_question(std::uint64_t exchange) {
  if (!unapproved_.empty()) take_unapproved(exchange, ApprovalEnd::withdrawn);
  if (!unwritten_.empty()) take_unwritten(exchange);
  if (undecided_.empty() && unobserved_.empty()) return;
  const bool waited = take_undecided(exchange).has_value() || take_unobserved(exchange).has_value();
  if (waited) unanswered(exchange, false);
}

}  // namespace bulkhead
