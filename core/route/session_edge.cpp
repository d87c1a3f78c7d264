#include "route/session_edge.hpp"

#include <iterator>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "route/claimed_name.hpp"
#include "route/handshake.hpp"
#include "route/splice.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
void SessionEdge::request(Session &s, Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  request.headers = nullptr;  // in these revisions, headers do not repeat parts of the body
  if (scan.method == mcp::Method::ping) return needs_.answers.result(request, "{}");
  if (scan.method == mcp::Method::initialize) return initialize(s, request);
  if (!s.initialized && s.handshake_optional) begin_session(s, 0, 0);
  if (!s.initialized) {
    ++needs_.counters.refused_messages;
    return needs_.answers.error(request, code::invalid_request,
                                "the session is not initialized: send initialize first (over HTTP, "
                                "include the Mcp-Session-Id header from its response)",
                                400);
  }
  if (!needs_.requests.offers(request)) return;
  if (scan.method == mcp::Method::logging_set_level) return set_log_level(s, request);
  // Of these revisions, only 2025-11-25 has tasks, and it has no tasks/update.
  const bool tasks = s.revision == newest_revision && scan.method != mcp::Method::tasks_update;
  if (is_task_method(scan.method) && !tasks) return needs_.requests.not_found(request);
  needs_.requests.answer(s, request);
}

void SessionEdge::initialize(Session &s, Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  if (s.initialized && !s.handshake_optional) {
    return needs_.answers.error(request, code::invalid_request,
                                "the session is already initialized");
  }
  if (request.reply.batch != 0) {
    return needs_.answers.error(request, code::invalid_request,
                                "initialize cannot be part of a batch");
  }
  std::string scratch;
  const std::string_view wanted =
      scan.protocol_version.empty()
          ? std::string_view{}
          : mcp::unquote(request.message[scan.protocol_version], &scratch);
  if (wanted.empty()) {
    return needs_.answers.error(request, code::invalid_params,
                                "initialize requires params.protocolVersion (a string)", 400);
  }
  s.claimed_name = claimed_name(request.message[scan.client_info]);
  begin_session(s, find_revision(wanted).value_or(newest_revision),
                s.answers_only ? 0 : parse_client_caps(request.message[scan.capabilities]));
  needs_.answers.result(request, initialize_result(s, needs_.profile));
}

ClientCaps SessionEdge::admit(Session &s, ClientCaps caps) {
  s.capability_set = nullptr;
  const auto admitted = capability_sets_.admit(caps, needs_.reactor.now_ns(),
                                               CapabilitySets::idle_ns(needs_.profile.limits));
  if (admitted.replaced != 0) needs_.views.retire(admitted.replaced);
  s.capability_set = admitted.use;
  return admitted.caps;
}

// Starts or restarts a session. In-flight calls, and requests that wait for lists, continue. The
// client's log level, subscriptions and approvals are discarded, and the client is no longer
// notified of changed lists until it requests them again. If servers run only for this session, the
// session keeps its previous capabilities: otherwise, a client could restart these servers as often
// as it likes, even while they handle its calls.
void SessionEdge::begin_session(Session &s, std::uint8_t revision, ClientCaps caps) {
  const bool own = s.view != nullptr && s.view->session != 0;
  if (!own) caps = admit(s, caps);
  const bool stays = own || (s.view != nullptr && s.caps == caps);
  s.revision = revision;
  if (!own) s.caps = caps;
  s.initialized = true;
  s.has_sessionless = false;  // the client uses the revision of its session
  s.log_level = -1;
  s.listed = 0;
  needs_.desk.forget_session(s.handle);
  needs_.subscriptions.forget_all(s);
  s.to_subscribe.clear();
  needs_.journal.save(s);
  if (stays) return;
  std::vector<View::Waiter> waiters = Views::take_waiters(s);
  if (s.view != nullptr) {
    needs_.asks.session_ended(s.handle);
    needs_.views.leave(s);
  }
  needs_.views.put_waiters(needs_.views.join(s), std::move(waiters));
}

void SessionEdge::set_log_level(Session &s, Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  std::string scratch;
  const int level = scan.level.empty()
                        ? -1
                        : parse_log_level(mcp::unquote(request.message[scan.level], &scratch));
  if (level < 0) {
    return needs_.answers.error(request, code::invalid_params,
                                "params.level must be one of debug, info, notice, warning, error, "
                                "critical, alert, emergency");
  }
  s.log_level = level;
  needs_.journal.save(s);
  for (Lane *lane : s.view->lanes) Views::update_log_level(*lane);
  needs_.answers.result(request, "{}");
}

void SessionEdge::notification(Session &s, const Message &message) {
  switch (message.scan->method) {
    case mcp::Method::notifications_initialized:
      s.ready = s.initialized;
      return;
    case mcp::Method::notifications_cancelled:
      return cancel(s, message.bytes, *message.scan);
    case mcp::Method::notifications_progress:
      return pass_progress(s, message);
    case mcp::Method::notifications_roots_list_changed:
      return pass_roots_changed(s, message);
    default:
      return;  // unknown notification: ignored
  }
}

// Forwards the client's progress on a server-initiated request, with the server's own progress
// token.
void SessionEdge::pass_progress(Session &s, const Message &message) {
  const Asks::Progress progress = needs_.asks.progress_of(s, message);
  if (progress.lane == nullptr) return;
  Splice splice(message.bytes);
  splice.replace(message.scan->token, progress.token);
  const bh_str *parts = splice.parts();
  if (parts == nullptr) return needs_.on_lost(*progress.lane, message.scan->method);
  needs_.notifications.to_server(*progress.lane, s, message, parts, splice.count());
}

void SessionEdge::pass_roots_changed(Session &s, const Message &message) {
  if (s.view == nullptr) return;
  const bh_str part = bh::str(message.bytes);
  for (Lane *lane : s.view->lanes) {
    // Unless roots are per client, the server does not receive the client's roots.
    if (lane->upstream().def().roots_mode() != RootsMode::per_client) continue;
    const bool declared = (lane->caps() & cap::roots_changed) != 0;
    if (lane->session() == s.handle && declared && lane->takes(message.scan->method)) {
      needs_.notifications.to_server(*lane, s, message, &part, 1);
    }
  }
}

// Cancels the request that the notification names. For a call, forwards the client's reason to the
// server. The transport's slot for the response is released without a response.
void SessionEdge::cancel(Session &s, std::string_view message, const mcp::Scan &scan) {
  const std::string_view id = scan.request_id.in(message);
  if (id.empty()) return;
  for (Call *call = s.open_calls.head; call != nullptr; call = call->session_next) {
    if (call->request.id == id) return needs_.ends.cancel(*call, {message, &scan});
  }
  if (const auto reply = needs_.views.cancel_waiting(s, id)) needs_.answers.none(*reply);
}

}  // namespace bulkhead
