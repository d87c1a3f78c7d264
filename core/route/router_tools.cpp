// What tools plugins say about calls that run in place.
#include <cmath>
#include <cstdio>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "reactor/post_owned.hpp"
#include "route/place_lane.hpp"
#include "route/router.hpp"

namespace bulkhead {

bh_status Router::tools_complete(bh_call call, std::uint32_t kind, std::string_view json) {
  Exchange *e = exchanges_.get(call);
  if (e == nullptr || e->lane == nullptr || e->lane->upstream().tools == nullptr) return BH_STALE;
  if (e->purpose != Purpose::call) {
    drop(*e);  // nobody waits for it
    return BH_OK;
  }
  const bool known = kind == BH_RESULT_OK || kind == BH_RESULT_ERROR;
  if (!known || !mcp::valid_json(json) || !json.starts_with('{')) {
    log(BH_LOG_PLUGIN_MISBEHAVES,
        "\"" + e->lane->upstream().name() + "\" answered \"" + e->name + "\" with invalid JSON");
    fail_exchange(*e, code::internal_error,
                  "server \"" + e->lane->upstream().name() + "\" gave an invalid answer",
                  BH_OUTCOME_ERROR);
    return BH_OK;
  }
  // The same message that a server behind a wire would have sent, through the same door.
  std::string message = R"({"jsonrpc":"2.0","id":)" + std::to_string(call);
  message.append(kind == BH_RESULT_OK ? R"(,"result":)" : R"(,"error":)");
  message.append(json).append("}");
  mcp::Scan scan;
  mcp::ScanError error;
  if (mcp::scan(message, &scan, &error)) {
    calls_.answered(*e, {message, &scan});
  } else {  // nested as deep as a message may be, before it was wrapped
    fail_exchange(*e, code::internal_error, error.what, BH_OUTCOME_ERROR);
  }
  return BH_OK;
}

void Router::tools_refused(bh_call call, const Error &error) {
  Exchange *e = exchanges_.get(call);
  if (e == nullptr) return;
  if (e->purpose != Purpose::call) return drop(*e);
  const std::int32_t error_code = error.code == BH_E_NOT_FOUND     ? code::method_not_found
                                  : error.code == BH_E_INVALID     ? code::invalid_params
                                  : error.code == BH_E_UNSUPPORTED ? code::method_not_found
                                                                   : code::internal_error;
  fail_exchange(*e, error_code, error.text, BH_OUTCOME_ERROR);
}

// What another thread has completed is posted, and comes before this. A result that a policy looks
// at is not missing.
void Router::expect_completed(bh_call call) {
  if (exchanges_.get(call) == nullptr) return;
  post_owned(reactor_, this, [this, call] {
    const Exchange *e = exchanges_.get(call);
    if (e == nullptr || e->lane == nullptr) return;
    const std::string server = "server \"" + e->lane->upstream().name() + "\"";
    log(BH_LOG_PLUGIN_MISBEHAVES, server + " returned BH_OK for a call without complete()");
    tools_refused(call,
                  {BH_E_PROTOCOL, server + " said that the call was done (BH_OK), but gave no "
                                           "result: it has not called complete()"});
  });
}

void Router::tools_progress(bh_call call, double progress, double total, std::string_view message) {
  const Exchange *e = exchanges_.get(call);
  if (e == nullptr || e->client_token.empty() || !std::isfinite(progress)) return;
  char number[64];
  std::string text = R"({"jsonrpc":"2.0","method":"notifications/progress","params":{)";
  std::snprintf(number, sizeof number, "%.15g", progress);
  text.append(R"("progressToken":)").append(e->client_token);
  text.append(R"(,"progress":)").append(number);
  if (std::isfinite(total) && total > 0) {
    std::snprintf(number, sizeof number, "%.15g", total);
    text.append(R"(,"total":)").append(number);
  }
  if (!message.empty()) {
    text.append(R"(,"message":)");
    mcp::append_quoted(&text, message);
  }
  text.append("}}");
  const bh_str part = bh::str(text);
  mcp::Scan scan;
  mcp::ScanError error;
  if (!gate_.judges_notifications()) return answers_.send(e->reply, BH_OUT_EVENT, &part, 1);
  if (e->lane == nullptr || !mcp::scan(text, &scan, &error)) return;
  notifications_.to_client(e->reply, *e->lane, e, {text, &scan}, &part, 1);
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

void Router::tools_changed(Upstream &upstream, std::uint32_t abi_kind) {
  if (abi_kind < BH_LIST_TOOLS || abi_kind > BH_LIST_PROMPTS) return;
  // The ABI's numbers are those of ItemKind plus one.
  const auto kind = static_cast<ItemKind>(abi_kind - 1);
  for (const auto &lane : upstream.lanes()) static_cast<PlaceLane &>(*lane).list_changed(kind);
}

void Router::tools_began(Upstream &upstream) {
  for (const auto &lane : upstream.lanes()) static_cast<PlaceLane &>(*lane).began();
}

void Router::resource_updated(Upstream &upstream, std::string_view uri) {
  std::string text =
      R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":)";
  mcp::append_quoted(&text, uri);
  text.append("}}");
  mcp::Scan scan;
  mcp::ScanError error;
  if (!mcp::scan(text, &scan, &error)) return;  // it is not UTF-8
  for (const auto &lane : upstream.lanes()) subscriptions_.updated(*lane, {text, &scan});
}

}  // namespace bulkhead
