#include "route/tools_edge.hpp"

#include <cmath>
#include <cstdio>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "reactor/post_owned.hpp"
#include "route/answer_form.hpp"
#include "route/place_lane.hpp"
#include "route/repeated_request.hpp"
#include "route/result_form.hpp"

namespace bulkhead {
namespace {

// Returns true if `member` is exactly `json`. `member` was extracted from a message that was built
// around `json`. If the two differ, `json` is not a single object, or it has injected members into
// the message.
bool is_whole(std::string_view member, std::string_view json) {
  const std::string_view found = json.substr(0, json.find_last_not_of(" \t\r\n") + 1);
  return member.starts_with('{') && member == found;
}

}  // namespace

bh_status ToolsEdge::complete(bh_call call, std::uint32_t kind, std::string_view json) {
  Exchange *e = needs_.exchanges.get(call);
  if (e == nullptr || e->lane->upstream().tools == nullptr) return BH_STALE;
  if (e->purpose != Purpose::call) {
    needs_.ends.drop(*e);  // no client waits for the result
    return BH_OK;
  }
  if (kind == BH_RESULT_INPUT_REQUIRED) {
    ask_for_input(*e->call, call, json);
    return BH_OK;
  }
  // Wrap the result in a message, so that it is handled like a message from a server that is behind
  // a connector.
  const bool ok = kind == BH_RESULT_OK;
  std::string text = R"({"jsonrpc":"2.0","id":)" + std::to_string(call);
  text.append(ok ? R"(,"result":)" : R"(,"error":)").append(json).append("}");
  mcp::Scan scan;
  mcp::ScanError error;
  const bool scanned = mcp::scan(text, &scan, &error);
  const Message message{text, &scan};
  if (scanned && (ok || kind == BH_RESULT_ERROR) &&
      is_whole(message[ok ? scan.result : scan.error], json)) {
    needs_.call_answers.answered(*e->call, message, &text);
  } else if (!scanned && mcp::valid_json(json) && json.starts_with('{')) {
    // The JSON is valid by itself, but not as part of a message: for example, the message exceeds
    // the maximum nesting depth.
    needs_.call_answers.fail_by_server(*e->call, code::internal_error, error.what,
                                       BH_OUTCOME_ERROR);
  } else {
    refuse_answer(*e->call);
  }
  return BH_OK;
}

// Handles a result that asks for input like the result of a server of MCP 2026-07-28, whose type
// the gateway adds.
void ToolsEdge::ask_for_input(Call &call, bh_call id, std::string_view json) {
  std::string_view problem;
  if (!lane_of(call)->server_caps().asks_input) {
    problem = "its features() do not have BH_TOOLS_ASKS_INPUT";
  } else if (!may_be_repeated(call.method)) {
    problem = "this method does not allow it";
  } else if (!json.starts_with('{') || !mcp::valid_json(json) || !has_members(json)) {
    problem = "the JSON is not an object with inputRequests or requestState";
  } else if (!mcp::member(json, "resultType").empty()) {
    problem = "the JSON has the member resultType, which the gateway adds";
  }
  std::string text = R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
                     R"(,"result":{"resultType":"input_required",)";
  if (problem.empty()) text.append(json.substr(1)).append("}");
  mcp::Scan scan;
  mcp::ScanError error;
  if (problem.empty() && !mcp::scan(text, &scan, &error)) problem = error.what;
  if (problem.empty()) {
    call.answer_form = &stateless_answer_form();
    return needs_.call_answers.answered(call, {text, &scan}, &text);
  }
  const std::string server = "server \"" + call.server + "\"";
  needs_.log(BH_LOG_PLUGIN_MISBEHAVES, server + " asked for input in the call of \"" + call.name +
                                           "\", but " + std::string(problem));
  needs_.call_answers.fail_by_server(
      call, code::internal_error, server + " asked for input in an invalid way", BH_OUTCOME_ERROR);
}

void ToolsEdge::refuse_answer(Call &call) {
  const std::string server = call.server;
  needs_.log(BH_LOG_PLUGIN_MISBEHAVES,
             "server \"" + server + "\" returned an invalid result for \"" + call.name +
                 "\": it must be one JSON object, of a BH_RESULT_... kind");
  needs_.call_answers.fail_by_server(call, code::internal_error,
                                     "server \"" + server + "\" returned an invalid response",
                                     BH_OUTCOME_ERROR);
}

void ToolsEdge::refused(bh_call call, const Error &error) {
  Exchange *e = needs_.exchanges.get(call);
  if (e == nullptr) return;
  if (e->purpose != Purpose::call) return needs_.ends.drop(*e);
  const std::int32_t error_code = error.code == BH_E_NOT_FOUND     ? code::method_not_found
                                  : error.code == BH_E_INVALID     ? code::invalid_params
                                  : error.code == BH_E_UNSUPPORTED ? code::method_not_found
                                                                   : code::internal_error;
  needs_.call_answers.fail_by_server(*e->call, error_code, error.text, BH_OUTCOME_ERROR);
}

// The check is deferred, because another thread may have posted a completion that must be handled
// first. A result that a policy is still evaluating does not count as missing.
void ToolsEdge::expect_completed(bh_call call) {
  if (needs_.exchanges.get(call) == nullptr) return;
  post_owned(needs_.reactor, this, [this, call] {
    const Exchange *e = needs_.exchanges.get(call);
    if (e == nullptr || e->lane == nullptr) return;
    const std::string server = "server \"" + e->lane->upstream().name() + "\"";
    needs_.log(BH_LOG_PLUGIN_MISBEHAVES,
               server + " returned BH_OK for a call but did not call complete()");
    refused(call, {BH_E_PROTOCOL, server + " returned BH_OK without a result: it did not call "
                                           "complete()"});
  });
}

void ToolsEdge::progress(bh_call call, double progress, double total, std::string_view message) {
  const Exchange *e = needs_.exchanges.get(call);
  if (e == nullptr || e->call == nullptr || !std::isfinite(progress)) return;
  const ClientRequest &request = e->call->request;
  if (request.progress_token.empty()) return;
  char number[64];
  std::string text = R"({"jsonrpc":"2.0","method":"notifications/progress","params":{)";
  std::snprintf(number, sizeof number, "%.15g", progress);
  text.append(R"("progressToken":)").append(request.progress_token);
  text.append(R"(,"progress":)").append(number);
  if (std::isfinite(total) && total > 0) {
    std::snprintf(number, sizeof number, "%.15g", total);
    text.append(R"(,"total":)").append(number);
  }
  if (!message.empty()) {
    bh::json::append_member(&text, "message", message);
  }
  text.append("}}");
  const bh_str part = bh::str(text);
  mcp::Scan scan;
  mcp::ScanError error;
  if (!needs_.gate.judges_notifications()) {
    return needs_.answers.send(request.reply, BH_OUT_EVENT, &part, 1);
  }
  if (!mcp::scan(text, &scan, &error)) return;
  needs_.notifications.to_client(request.reply, *e->lane, e->call, {text, &scan}, &part, 1);
}

void ToolsEdge::event(bh_call call, std::uint32_t kind, std::string_view detail) {
  Exchange *e = needs_.exchanges.get(call);
  if (e == nullptr || e->call == nullptr || e->lane->upstream().tools == nullptr) return;
  Call &owner = *e->call;
  if (!needs_.recorder.wants_events()) return;
  const bool known = kind >= BH_RECORD_NET && kind <= BH_RECORD_SNAPSHOT;
  const bool fits = detail.size() <= BH_EVENT_BYTES && detail.starts_with('{');
  if (!known || !fits || !mcp::valid_json(detail)) {
    ++needs_.counters.dropped_details;
    return needs_.log(BH_LOG_PLUGIN_MISBEHAVES,
                      "\"" + owner.server + "\" sent an invalid event for the call's record");
  }
  if (owner.account.events++ >= BH_EVENTS_PER_CALL) {
    ++needs_.counters.dropped_details;
    return;
  }
  needs_.recorder.event(owner, kind, detail);
}

void ToolsEdge::list_changed(Upstream &upstream, std::uint32_t abi_kind) {
  if (abi_kind < BH_LIST_TOOLS || abi_kind > BH_LIST_PROMPTS) return;
  // BH_LIST_* values are ItemKind values plus one.
  const auto kind = static_cast<ItemKind>(abi_kind - 1);
  for (const auto &lane : upstream.lanes()) static_cast<ToolsLane &>(*lane).list_changed(kind);
}

void ToolsEdge::began(Upstream &upstream) {
  for (const auto &lane : upstream.lanes()) static_cast<ToolsLane &>(*lane).began();
}

void ToolsEdge::resource_updated(Upstream &upstream, std::string_view uri) {
  std::string text =
      R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":)";
  bh::json::append_quoted(&text, uri);
  text.append("}}");
  mcp::Scan scan;
  mcp::ScanError error;
  if (!mcp::scan(text, &scan, &error)) return;  // the URI is not valid UTF-8
  for (const auto &lane : upstream.lanes()) needs_.subscriptions.updated(*lane, {text, &scan});
}

}  // namespace bulkhead
