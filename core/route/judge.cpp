#include "route/judge.hpp"

#include <algorithm>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/for_each.hpp"
#include "route/duplicate_checks.hpp"
#include "route/lane.hpp"
#include "route/policy_request.hpp"
#include "route/session.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

// Returns the definition of the resolved item, or an empty view if the item was not listed, is no
// longer listed or has another definition by now.
std::string_view definition_of(const Resolved &resolved, const Lane &lane) {
  const ItemList &list = lane.items(resolved.kind);
  if (resolved.definition_hash == DefinitionHash{} || resolved.item >= list.items.size()) return {};
  const ItemList::Item &item = list.items[resolved.item];
  const bool same = item.hash == resolved.definition_hash;
  return same ? item.raw.in(list.bytes) : std::string_view{};
}

bool has_number(std::string_view token) {
  return !token.empty() && std::all_of(token.begin(), token.end(),
                                       [](char c) { return (c >= '0' && c <= '9') || c == '-'; });
}

}  // namespace

std::string error_as_result(std::string_view error) {
  const std::string_view message = mcp::member(error, "message"), data = mcp::member(error, "data");
  // An integer code contains no text that the policy would have to evaluate.
  bool whole = !message.starts_with('"') || (!data.empty() && !data.starts_with('{')) ||
               !has_number(mcp::member(error, "code"));
  mcp::for_each_member(error, [&whole](std::string_view key, std::string_view) {
    std::string scratch;
    const std::string_view name = mcp::unquote(key, &scratch);
    if (name != "code" && name != "message" && name != "data") whole = true;
  });
  std::string out = R"({"isError":true,"content":[)";
  out.reserve(out.size() + 2 * error.size() + 96);
  if (message.starts_with('"')) out.append(R"({"type":"text","text":)").append(message).append("}");
  out += ']';
  if (data.starts_with('{')) out.append(R"(,"structuredContent":)").append(data);
  if (whole) out.append(R"(,"error":)").append(error);
  return out + "}";
}

Gate::Decision Judge::duplicates_in(std::string_view where) {
  return Gate::refusal({}, std::string(where) + " an object with duplicate members");
}

mcp::Range Judge::judged_part(const mcp::Scan &scan) noexcept {
  const bool more = scan.extra_params || scan.method == mcp::Method::completion_complete;
  return more ? scan.params : scan.arguments;
}

std::string_view Judge::judged_part_of_answer(const Message &answer) {
  const mcp::Scan &scan = *answer.scan;
  return answer[scan.kind == mcp::Kind::result ? scan.result : scan.error];
}

bool Judge::checks_later(const mcp::Scan &scan) const noexcept {
  return gate_.reads_arguments() && judged_part(scan).size() > DuplicateChecks::at_once;
}

bh_policy_request Judge::request_of(const Call &call) const {
  bh_policy_request request;
  if (call.session != nullptr) {
    request = policy_request_of(*call.session, reactor_.now_ns());
  } else {
    request = {};
    request.size = sizeof request;
    request.session = call.request.reply.session;
  }
  request.exchange = call.id;
  request.process_name = bh::str(call.request.process_name);
  // The results of a task are the results of the call that created it.
  const bool task = is_task_method(call.method);
  request.method = bh::str(mcp::to_string(task ? mcp::Method::tools_call : call.method));
  request.server = bh::str(call.server);
  request.name = bh::str(call.name);
  return request;
}

Gate::Decision Judge::decide(const Call &call, const Message &message, const Target &target,
                             std::uint32_t flags) const {
  const std::string_view judged = message[judged_part(*message.scan)];
  if (gate_.reads_arguments() && !judged.empty() && mcp::has_duplicate_members(judged)) {
    return duplicates_in("arguments contain");
  }
  return decide_checked(call, message, target, flags);
}

Gate::Decision Judge::decide_checked(const Call &call, const Message &message, const Target &target,
                                     std::uint32_t flags) const {
  const mcp::Scan &scan = *message.scan;
  bh_policy_request request = request_of(call);
  request.flags = flags;
  std::string extra;
  if (gate_.reads_arguments()) {
    if (has_arguments(scan.method)) request.arguments = bh::str(message[scan.arguments]);
    if (scan.method == mcp::Method::completion_complete) {
      request.argument = bh::str(message[scan.argument]);
      request.context = bh::str(message[scan.context]);
    }
    extra = mcp::extra_params(message.bytes, scan);
    request.extra = bh::str(extra);
  }
  if (gate_.reads_definitions()) {
    request.definition = bh::str(definition_of(target.resolved, *target.lane));
  }
  request.meta = bh::str(message[scan.meta]);
  request.pin =
      pins_.state(*target.lane, target.resolved.kind, call.name, target.resolved.definition_hash);
  std::string hash;
  if (target.resolved.definition_hash != DefinitionHash{}) {
    hash = to_hex(target.resolved.definition_hash);
    request.definition_hash = bh::str(hash);
  }
  return gate_.decide(request);
}

Gate::Decision Judge::observe(const Call &call, const Message &answer) const {
  const std::string_view body = judged_part_of_answer(answer);
  bh_policy_request request = request_of(call);
  if (!call.judged) request.flags |= BH_REQUEST_UNDECIDED;
  if (answer.scan->kind == mcp::Kind::result) {
    if (!describes_task(call.task, call.method, body)) return gate_.observe(request, body);
    return gate_.observe(request, judged_task(body));
  }
  return gate_.observe(request, error_as_result(body));
}

bool Judge::renew_definition(const Call &call, Target *target) {
  Resolved &resolved = target->resolved;
  if (resolved.definition_hash == DefinitionHash{}) return false;  // it was not listed
  const ItemList &list = target->lane->items(resolved.kind);
  const auto &items = list.items;
  const DefinitionHash before = resolved.definition_hash;
  if (resolved.item < items.size() && items[resolved.item].hash == before) return false;
  const ItemList::Item *item = list.find_named(call.name);
  resolved.definition_hash = item == nullptr ? DefinitionHash{} : item->hash;
  resolved.item = item == nullptr ? 0 : static_cast<std::uint32_t>(item - items.data());
  return resolved.definition_hash != before;
}

bool Judge::is_approved(const Call &call, const Target &target) const {
  if (!pins_.enforces() || target.resolved.kind != ItemKind::tool) return true;
  return pins_.state(*target.lane, ItemKind::tool, call.name, target.resolved.definition_hash) ==
         BH_PIN_SAME;
}

Gate::Decision Judge::not_approved(const Call &call, const Target &target) const {
  const auto state =
      pins_.state(*target.lane, ItemKind::tool, call.name, target.resolved.definition_hash);
  if (state == BH_PIN_UNKNOWN) {
    return Gate::refusal(std::string(Gate::pin_rule),
                         "this tool is new, and its definition has not been approved; `bulkhead "
                         "pins show` shows it, "
                         "and `bulkhead pins approve` approves it");
  }
  return Gate::refusal(
      std::string(Gate::pin_rule),
      "the definition of this tool differs from the approved definition; `bulkhead pins show` "
      "shows both, and `bulkhead pins approve` approves the new one");
}

void Judge::note(Call &call, const Gate::Decision &decision) const {
  if (!recorder_.active() || decision.verdict == Gate::Verdict::pending) return;
  Account &account = call.account;
  if (decision.warned) account.flags |= BH_RECORD_WARNED;
  if (decision.verdict == Gate::Verdict::allow && account.action == BH_VERDICT_ASK) return;
  account.action = decision.action;
  if (decision.verdict == Gate::Verdict::refuse && !decision.asks) {
    account.action = BH_VERDICT_BLOCK;  // also if the gate itself refused
  }
  account.rule = decision.rule;
  account.reason = decision.reason;
}

}  // namespace bulkhead
