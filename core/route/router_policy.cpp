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

Gate::Decision duplicates_in(std::string_view where) {
  return Gate::refusal({}, std::string(where) + " an object with duplicate members");
}

Gate::Decision no_place() {
  return Gate::failed("the pool for blocking work is full; try again later");
}

// What of an answer is judged.
std::string_view body_of(std::string_view message, const mcp::Scan &scan) {
  return (scan.kind == mcp::Kind::result ? scan.result : scan.error).in(message);
}

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

bool has_number(std::string_view token) {
  return !token.empty() && std::all_of(token.begin(), token.end(),
                                       [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
}

// A server's error as policies see it, which read results: the message is its text, data its
// structured content. What would have no place there is in it with the whole error.
std::string error_as_result(std::string_view error) {
  const std::string_view message = mcp::member(error, "message"), data = mcp::member(error, "data");
  // Only a number says no more than a number.
  bool whole = !message.starts_with('"') || (!data.empty() && !data.starts_with('{')) ||
               !has_number(mcp::member(error, "code"));
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

// False: refused, and answered.
bool Router::passes_pins(Exchange &e, const Target &target) {
  if (!pins_.enforces() || target.resolved.kind != ItemKind::tool) return true;
  const std::uint32_t pin =
      pins_.state(target.lane->upstream(), ItemKind::tool, e.name, target.resolved.definition_hash);
  if (pin == BH_PIN_SAME) return true;
  refuse(e, Gate::refusal(std::string(Gate::pin_rule),
                          "the definition of this tool is not the one that was approved; "
                          "`bulkhead pins` shows both, `bulkhead pins approve` accepts it"));
  return false;
}

// ---- calls -----------------------------------------------------------------------------------

// What the policy reads of params, in one piece.
mcp::Range Router::judged_part(const mcp::Scan &scan) noexcept {
  const bool more = scan.extra_params || scan.method == mcp::Method::completion_complete;
  return more ? scan.params : scan.arguments;
}

// It is too large to be looked at for duplicate members before somebody else's turn.
bool Router::checks_later(const mcp::Scan &scan) const noexcept {
  return gate_.reads_arguments() && judged_part(scan).size() > DuplicateChecks::at_once;
}

Gate::Decision Router::judge_call(const Exchange &e, std::string_view message,
                                  const mcp::Scan &scan, const Target &target,
                                  std::uint32_t flags) const {
  const std::string_view judged = judged_part(scan).in(message);
  if (gate_.reads_arguments() && !judged.empty() && mcp::has_duplicate_members(judged)) {
    return duplicates_in("arguments hold");
  }
  return ask_policy(e, message, scan, target, flags);
}

// Of arguments in which no object has one member twice.
Gate::Decision Router::ask_policy(const Exchange &e, std::string_view message,
                                  const mcp::Scan &scan, const Target &target,
                                  std::uint32_t flags) const {
  bh_policy_request request = policy_request(e);
  request.flags = flags;
  std::string extra;
  if (gate_.reads_arguments()) {
    request.arguments = bh::str(scan.arguments.in(message));
    if (scan.method == mcp::Method::completion_complete) {
      request.argument = bh::str(scan.argument.in(message));
      request.context = bh::str(scan.context.in(message));
    }
    extra = mcp::extra_params(message, scan);
    request.extra = bh::str(extra);
  }
  if (gate_.reads_definitions()) {
    request.definition = bh::str(definition_of(target.resolved, *target.lane));
  }
  request.meta = bh::str(scan.meta.in(message));
  request.pin = pins_.state(target.lane->upstream(), target.resolved.kind, e.name,
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
  if (checks_later(scan)) {
    check_call(e, {kept(message), scan, target, false, {}});
    return false;
  }
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
      if (!wait_for_policy(e, {kept(message), scan, target, false, {}})) unanswered(e.id, false);
      return false;
    default:
      if (decision.asks) return has_approval(e, message, scan, target, decision);
      refuse(e, decision);
      return false;
  }
}

// False: it is refused, since too much waits.
bool Router::wait_for_policy(Exchange &e, Undecided call) {
  const std::size_t bytes = call.message->size();
  if (!waiting_bytes_.take(bytes)) {
    refuse(e, too_much());
    return false;
  }
  undecided_.emplace(e.id, std::move(call));
  arm(e, policy_time_ms(bytes));
  return true;
}

std::uint64_t Router::policy_time_ms(std::size_t bytes) const noexcept {
  constexpr std::size_t bytes_per_ms = 8'192;
  return limits().policy_timeout_ms + bytes / bytes_per_ms;
}

// The policy is asked once the pool has found no duplicate members.
void Router::check_call(Exchange &e, Undecided call) {
  const KeptText message = call.message;
  const std::string_view judged = judged_part(call.scan).in(*message);
  if (!wait_for_policy(e, std::move(call))) return;
  if (duplicate_checks_.begin(e.id, message, judged)) return;
  take_undecided(e.id);
  refuse(e, no_place());
}

void Router::call_checked(Exchange &e, bool duplicates) {
  Gate::Decision decision = duplicates_in("arguments hold");
  if (!duplicates) {
    const Undecided &call = undecided_.at(e.id);
    decision = ask_policy(e, *call.message, call.scan, call.target,
                          call.approved ? BH_REQUEST_APPROVED | BH_REQUEST_AGAIN : 0);
    if (decision.verdict == Gate::Verdict::pending) return;
  }
  if (const auto call = take_undecided(e.id)) call_decided(e, *call, decision);
}

void Router::checked(std::uint64_t number, bool duplicates) {
  if (events_.has(number)) return events_.checked(number, duplicates);
  Exchange *e = exchanges_.get(number);
  if (e == nullptr) return;  // it has ended meanwhile
  if (undecided_.contains(number)) return call_checked(*e, duplicates);
  if (unobserved_.contains(number)) result_checked(*e, duplicates);
}

void Router::refuse(Exchange &e, const Gate::Decision &decision) {
  ++counters_.refused_by_policy;
  std::string text = "MCP request blocked by policy";
  if (!decision.rule.empty()) text += " (" + decision.rule + ")";
  if (!decision.reason.empty()) text += ": " + decision.reason;
  const ReplyTo reply = e.reply;
  const std::string id = e.client_id;
  finish(e, BH_OUTCOME_REFUSED, 0, decision.rule, decision.reason);
  answers_.error(reply, id, code::invalid_request, text);
}

void Router::call_decided(Exchange &e, const Undecided &call, const Gate::Decision &decision) {
  note_decision(e, decision);
  if (decision.verdict == Gate::Verdict::refuse && !decision.asks) return refuse(e, decision);
  const std::string &message = *call.message;
  const mcp::Scan &scan = call.scan;
  // A person's answer is to the rules that asked: another one asks anew.
  const bool approved = call.approved && has_rules(call.rule, decision.rule);
  if (decision.asks && !approved && !has_approval(e, message, scan, call.target, decision)) {
    return;
  }
  if (decision.verdict == Gate::Verdict::rewrite && scan.arguments.empty()) {
    return refuse(e, Gate::refusal(decision.rule, "there are no arguments to rewrite"));
  }
  if (!passes_pins(e, call.target)) return;  // it may be another one by now
  // The server has its whole time, however long the policy took.
  arm(e, call.target.lane->upstream().timeout_ms(scan.method, e.name));
  dispatch(e, message, scan, call.target, decision.replacement);
}

// ---- results and errors ----------------------------------------------------------------------

// False: answered otherwise, or the decision is pending.
bool Router::passes_result(Exchange &e, std::string_view message, const mcp::Scan &scan) {
  const std::string_view body = body_of(message, scan);
  if (body.size() > DuplicateChecks::at_once) {
    const std::uint64_t id = e.id;
    if (!keep_result(e, message, scan)) return false;
    const auto at = unobserved_.find(id);
    if (at == unobserved_.end()) return false;  // ended when its lane went on
    const KeptText text = at->second.message;
    if (duplicate_checks_.begin(id, text, body_of(*text, scan))) return false;
    take_unobserved(id);
    refuse_result(e, no_place());
    return false;
  }
  if (mcp::has_duplicate_members(body)) {
    answer_filtered(e, message, scan, duplicates_in("the result holds"));
    return false;
  }
  const Gate::Decision decision = observe(e, message, scan);
  if (decision.verdict == Gate::Verdict::allow) return true;
  if (decision.verdict != Gate::Verdict::pending) {
    answer_filtered(e, message, scan, decision);
    return false;
  }
  const std::uint64_t id = e.id;
  if (!keep_result(e, message, scan)) unanswered(id, false);
  return false;
}

Gate::Decision Router::observe(const Exchange &e, std::string_view message,
                               const mcp::Scan &scan) const {
  const std::string_view body = body_of(message, scan);
  if (scan.kind == mcp::Kind::result) return gate_.observe(policy_request(e), body);
  return gate_.observe(policy_request(e), error_as_result(body));
}

// False: it is refused, since too much waits.
bool Router::keep_result(Exchange &e, std::string_view message, const mcp::Scan &scan) {
  if (!waiting_bytes_.take(message.size())) {
    refuse_result(e, too_much());
    return false;
  }
  unobserved_.emplace(e.id, Unobserved{kept(message), scan});
  // The server is done: its place is free for others, and its end is nothing to this call.
  Lane *lane = e.lane;
  detach(e);
  arm(e, policy_time_ms(message.size()));
  lane->pump();
  draining_.look_later();
  return true;
}

void Router::result_checked(Exchange &e, bool duplicates) {
  Gate::Decision decision = duplicates_in("the result holds");
  if (!duplicates) {
    const Unobserved &result = unobserved_.at(e.id);
    decision = observe(e, *result.message, result.scan);
    if (decision.verdict == Gate::Verdict::pending) return;
  }
  if (const auto result = take_unobserved(e.id)) result_decided(e, *result, decision);
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
  const bh_str *parts = splice.parts();
  if (parts == nullptr) return refuse_result(e, Gate::failed(Splice::failure));
  const ReplyTo reply = e.reply;
  const std::uint64_t id = e.id;
  const std::string_view result = decision.replacement;
  if (recorder_.goes_first()) {
    put_on_record(e, {BH_OUTCOME_OK, reactor_.now_ns(), result.size(), decision.rule, {}, result});
  }
  answers_.answer(reply, parts, splice.count());
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
  answers_.error(reply, id, error_code, text);
}

void Router::result_decided(Exchange &e, const Unobserved &result, const Gate::Decision &decision) {
  if (decision.verdict == Gate::Verdict::allow) return pass_answer(e, *result.message, result.scan);
  answer_filtered(e, *result.message, result.scan, decision);
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

std::vector<std::uint64_t> Router::waiting_for(const Lane &lane) const {
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

std::optional<Router::Undecided> Router::take_undecided(std::uint64_t exchange) {
  auto node = undecided_.extract(exchange);
  if (node.empty()) return std::nullopt;
  waiting_bytes_.give_back(node.mapped().message->size());
  return std::move(node.mapped());
}

std::optional<Router::Unobserved> Router::take_unobserved(std::uint64_t exchange) {
  auto node = unobserved_.extract(exchange);
  if (node.empty()) return std::nullopt;
  waiting_bytes_.give_back(node.mapped().message->size());
  return std::move(node.mapped());
}

void Router::policy_decided(std::uint64_t exchange, const Gate::Decision &decision) {
  if (events_.has(exchange)) return events_.decided(exchange, decision);
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
