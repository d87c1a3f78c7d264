#include "route/restored_sessions.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "route/protocol.hpp"

namespace bulkhead {
namespace {

constexpr int log_level_count = 8;
constexpr ClientCaps all_caps = 2 * cap::elicitation_url - 1;

constexpr std::string_view lost_call =
    "the gateway's endpoint was restarted before it could respond: the call may have run and was "
    "not retried";
constexpr std::string_view lost_initialize =
    "the gateway's endpoint was restarted before it could respond: send initialize again";

// Returns true if the stored id is exactly one valid JSON-RPC id.
bool is_id(const std::string &id) {
  const std::string message = R"({"jsonrpc":"2.0","method":"ping","id":)" + id + "}";
  mcp::Scan scan;
  mcp::ScanError error;
  return mcp::scan(message, &scan, &error) && scan.kind == mcp::Kind::request &&
         scan.id.in(message) == id;
}

std::string_view text_of(const LedgerRequest &request) {
  return request.initialize ? lost_initialize : lost_call;
}

std::string subscribe_message(const std::string &uri) {
  return R"({"jsonrpc":"2.0","id":0,"method":"resources/subscribe","params":{"uri":)" + uri + "}}";
}

}  // namespace

void RestoredSessions::restore(bh_session handle, std::uint8_t revision, ClientCaps caps,
                               std::string_view id, SealTime sealed) {
  Session *s = needs_.sessions.find(handle);
  if (s == nullptr || s->initialized || revision >= std::size(revisions)) return;
  s->revision = revision;
  s->caps = needs_.admit(*s, caps);
  s->initialized = s->ready = true;
  s->listed = static_cast<std::uint8_t>((1u << item_kinds) - 1);
  s->to_tell_lists = true;
  needs_.journal.reopened(*s, id, sealed);
  read_record(*s);
  needs_.views.join(*s);
  continuing_.ask();
}

void RestoredSessions::read_record(Session &s) {
  if (s.slot == Ledger::none) return;
  auto record = needs_.journal.ledger()->read(s.slot);
  if (!record) return;
  s.listed &= record->listed;
  if (record->log_level >= 0 && record->log_level < log_level_count)
    s.log_level = record->log_level;
  s.to_subscribe = std::move(record->subscriptions);
  const std::size_t most = needs_.profile.limits.subscriptions_per_session;
  if (s.to_subscribe.size() > most) s.to_subscribe.resize(most);
}

std::optional<RestoredSessions::Carried> RestoredSessions::carry(bh_session handle) {
  Session *s = needs_.sessions.find(handle);
  if (s == nullptr || !needs_.journal.carries()) return std::nullopt;
  Ledger &ledger = *needs_.journal.ledger();
  Carried carried{false, ledger.last_stream(), ledger.note(), ledger.unread()};
  owed_ = ledger.requests();
  needs_.journal.carry(*s);
  const auto record = ledger.read(Ledger::carried);
  // If initialize is pending, the client does not know whether its handshake has succeeded, so it
  // must repeat the handshake.
  const bool shaking = std::any_of(owed_.begin(), owed_.end(),
                                   [](const LedgerRequest &request) { return request.initialize; });
  if (record && record->revision < std::size(revisions) && !shaking) {
    restore(handle, record->revision, record->caps & all_caps, {}, {});
    carried.restored = true;
  } else {
    ledger.release(Ledger::carried);
  }
  if (!owed_.empty()) continuing_.ask();
  return carried;
}

// Runs at the end of the current iteration of the event loop, because before that, the transport
// does not know the session.
void RestoredSessions::continue_all() {
  answer_owed_requests();
  needs_.views.for_each([this](View &view) { lists_ready(view); });
  needs_.on_idle();
}

// Responds to the requests of the earlier process with errors. Their ledger entries are removed
// when the transport reports that the responses were sent.
void RestoredSessions::answer_owed_requests() {
  for (const LedgerRequest &request : std::exchange(owed_, {})) {
    if (needs_.journal.carried() == 0) return;
    if (!is_id(request.id)) {
      needs_.journal.settle(needs_.journal.carried(), request.stream);
      continue;
    }
    std::string text = R"({"jsonrpc":"2.0","id":)" + request.id + R"(,"error":{"code":)" +
                       std::to_string(code::internal_error) + R"(,"message":)";
    bh::json::append_quoted(&text, text_of(request));
    text += "}}";
    record_lost(request);
    const bh_str part = bh::str(text);
    needs_.answers.send({needs_.journal.carried(), request.stream, 0}, BH_OUT_ANSWER, &part, 1);
  }
}

// Records a request of the earlier process. Only its id is known, and whether it is initialize.
void RestoredSessions::record_lost(const LedgerRequest &request) {
  const Session *s = needs_.sessions.find(needs_.journal.carried());
  if (!needs_.recorder.active() || s == nullptr) return;
  const std::string message = R"({"jsonrpc":"2.0","id":)" + request.id + R"(,"method":")" +
                              (request.initialize ? "initialize" : "unknown") + "\"}";
  mcp::Scan scan;
  mcp::ScanError error;
  if (!mcp::scan(message, &scan, &error)) return;
  const std::uint64_t now = needs_.reactor.now_ns();
  needs_.recorder.record({s, s->handle, message, &scan, now},
                         {BH_OUTCOME_ERROR, now, 0, {}, text_of(request), {}});
}

void RestoredSessions::lists_ready(View &view) {
  if (!Views::is_ready(view)) return;
  bool told = false;
  for (Session *s : std::vector<Session *>(view.clients)) {
    if (std::exchange(s->to_tell_lists, false)) {
      if (!std::exchange(told, true)) needs_.views.mark_shown(view);
      for (const ItemKind kind : all_item_kinds) {
        if (kind == ItemKind::resource_template || !needs_.profile.expose.list_changed) continue;
        needs_.views.tell_list_changed(*s, kind);
      }
    }
    if (!s->to_subscribe.empty()) subscribe_again(s->handle);
  }
}

// Subscribes on behalf of the client, so the policy evaluates the request. If no server offers the
// resource yet, the subscription is retried when lists change.
void RestoredSessions::subscribe_again(bh_session handle) {
  std::string scratch;
  for (std::size_t i = 0;;) {
    Session *s = needs_.sessions.find(handle);
    if (s == nullptr || i >= s->to_subscribe.size()) return;
    const std::string uri = s->to_subscribe[i];
    const std::string message = subscribe_message(uri);
    mcp::Scan scan;
    mcp::ScanError error;
    const bool sound = mcp::scan(message, &scan, &error) && scan.uri.in(message) == uri;
    if (sound &&
        !needs_.views.catalogue(*s->view).resolve_uri(mcp::unquote(uri, &scratch), needs_.names)) {
      ++i;
      continue;
    }
    s->to_subscribe.erase(s->to_subscribe.begin() + static_cast<std::ptrdiff_t>(i));
    if (!sound) continue;
    const std::uint64_t silent = needs_.answers.batches().open_silent({handle, 0, 0});
    Incoming request{{handle, 0, silent}, {message, &scan}, needs_.reactor.now_ns()};
    request.recorded = true;  // gateway requests are recorded only if they become calls
    needs_.handle(*s, request);
  }
}

}  // namespace bulkhead
