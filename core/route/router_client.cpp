// What clients send: sessions' handshakes, lists, utility methods, notifications and answers.
#include <algorithm>
#include <iterator>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "route/drop_members.hpp"
#include "route/router.hpp"
#include "route/splice.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view version_text = BULKHEAD_VERSION;

bool is_subscription(mcp::Method method) {
  return method == mcp::Method::resources_subscribe || method == mcp::Method::resources_unsubscribe;
}

}  // namespace

bh_status Router::deliver(bh_session handle, std::uint64_t stream, std::string_view message,
                          bh_delivery *out) {
  Session *s = session(handle);
  if (s == nullptr) return BH_STALE;
  out->kind = BH_DELIVERED_NOTHING;
  out->flags = 0;
  const ReplyTo reply{handle, stream, 0};
  if (handle_message(*s, reply, message, out)) out->kind = BH_DELIVERED_ANSWER;
  if (const Session *still = session(handle); still != nullptr && still->ready) {
    out->flags |= BH_DELIVERED_READY;
  }
  if (handle == carried_) ledger_->commit();
  return BH_OK;
}

// True if an answer has been or will be sent. The session may be gone when this returns.
bool Router::handle_message(Session &s, const ReplyTo &reply, std::string_view message,
                            bh_delivery *out) {
  mcp::Scan scan;
  mcp::ScanError error;
  if (message.size() > limits().message_bytes) {
    ++counters_.refused_messages;
    out->flags |= BH_DELIVERED_REFUSED;
    answers_.unrecorded_error(reply, {}, code::invalid_request,
                              "the message is larger than " +
                                  std::to_string(limits().message_bytes) +
                                  " bytes (limits.message_bytes)",
                              413);
    return true;
  }
  if (!mcp::scan(message, &scan, &error)) {
    ++counters_.refused_messages;
    out->flags |= BH_DELIVERED_REFUSED;
    answers_.unrecorded_error(
        reply, error.id.in(message), error.code,
        std::string(error.what) + " (at byte " + std::to_string(error.offset) + ")", 400);
    return true;
  }
  if (s.sessionless == Session::Sessionless::in_delivery &&
      scan.method == mcp::Method::initialize && scan.kind == mcp::Kind::request) {
    s.sessionless = Session::Sessionless::begins_session;
    return false;
  }
  std::string room;
  counters_.dropped_members += drop_members(profile_, &message, &scan, &room);
  // From here on it may end this process, and must not end the next one, too.
  if (s.handle == carried_ && scan.kind != mcp::Kind::batch) {
    if (scan.kind == mcp::Kind::request) {
      ledger_->add_request(reply.stream, scan.id.in(message),
                           scan.method == mcp::Method::initialize);
    }
    ledger_->commit();
  }
  switch (scan.kind) {
    case mcp::Kind::batch:
      return handle_batch(s, reply, message);
    case mcp::Kind::request: {
      Incoming request{reply, {message, &scan}, reactor_.now_ns()};
      handle_request(s, request);
      if (scan.method == mcp::Method::initialize) {
        const Session *still = session(reply.session);
        if (still != nullptr && still->initialized) out->flags |= BH_DELIVERED_INITIALIZE;
      }
      return true;
    }
    case mcp::Kind::notification: {
      if (scan.bad_progress_token) {
        ++counters_.refused_messages;
        return false;
      }
      const std::uint64_t now = reactor_.now_ns();
      record_message(&s, reply.session, message, scan, now, {BH_OUTCOME_OK, now, 0, {}, {}, {}});
      handle_notification(s, {message, &scan});
      return false;
    }
    default:
      asks_.answered(s, {message, &scan});
      return false;
  }
}

void Router::record_message(const Session *from, bh_session handle, std::string_view message,
                            const mcp::Scan &scan, std::uint64_t start_ns,
                            const Recorder::End &end) {
  if (recorder_.active()) recorder_.record({from, handle, message, &scan, start_ns}, end);
}

void Router::handle_request(Session &s, Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  if (recorder_.active() && (recorder_.must_refuse(exchanges_.size()) || answers_.held_full())) {
    ++counters_.refused_unrecorded;
    return answers_.unrecorded_error(
        request.reply, request.id(), code::internal_error,
        "the gateway cannot put calls on record at the moment, and its profile wants none without "
        "(on_failure = \"block\")");
  }
  if (scan.bad_progress_token) {
    ++counters_.refused_messages;
    return answers_.error(request, code::invalid_params, bad_progress_token);
  }
  if (scan.unknown_params != 0 && profile_.unknown_params == UnknownParams::refuse) {
    ++counters_.refused_messages;
    return answers_.error(request, code::invalid_params,
                          std::string(mcp::to_string(scan.method)) + " has no params " +
                              mcp::unknown_param_names(request.message.bytes, scan) +
                              " (gateway.unknown_params = \"refuse\")");
  }
  if (scan.method == mcp::Method::ping) return answers_.result(request, "{}");
  if (scan.method == mcp::Method::initialize) return initialize(s, request);
  if (scan.method == mcp::Method::server_discover || scan.modern) {
    // A client of the stateless revision falls back to initialize on any error but its own codes.
    return answers_.error(request, code::method_not_found,
                          "this server speaks MCP 2024-11-05 to 2025-11-25; send initialize", 400);
  }
  if (!s.initialized && s.handshake_optional) begin_session(s, 0, 0);
  if (!s.initialized) {
    ++counters_.refused_messages;
    return answers_.error(request, code::invalid_request,
                          "the session is not initialized: send initialize first (over HTTP, "
                          "repeat the Mcp-Session-Id header of its answer)",
                          400);
  }
  if (!is_exposed(profile_.expose, scan.method)) {
    return answers_.error(request, code::method_not_found,
                          "Method not found: " + std::string(mcp::to_string(scan.method)) +
                              " is not offered by this gateway's profile");
  }
  if (const auto kind = listed_kind(scan.method)) return lists_.answer(s, request, *kind);
  switch (scan.method) {
    case mcp::Method::tools_call:
    case mcp::Method::prompts_get:
    case mcp::Method::resources_read:
    case mcp::Method::resources_subscribe:
    case mcp::Method::resources_unsubscribe:
    case mcp::Method::completion_complete:
      return call(s, request);
    case mcp::Method::logging_set_level:
      return set_log_level(s, request);
    default: {
      std::string scratch;
      const std::string_view method = mcp::unquote(request.message[scan.method_text], &scratch);
      return answers_.error(request, code::method_not_found,
                            "Method not found: " + std::string(method.substr(0, 100)));
    }
  }
}

void Router::initialize(Session &s, Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  if (s.initialized && !s.handshake_optional) {
    return answers_.error(request, code::invalid_request, "the session is already initialized");
  }
  if (request.reply.batch != 0) {
    return answers_.error(request, code::invalid_request, "initialize cannot be part of a batch");
  }
  std::string scratch;
  const std::string_view wanted =
      scan.protocol_version.empty()
          ? std::string_view{}
          : mcp::unquote(request.message[scan.protocol_version], &scratch);
  if (wanted.empty()) {
    return answers_.error(request, code::invalid_params,
                          "initialize needs params.protocolVersion (a string)", 400);
  }
  begin_session(s, find_revision(wanted).value_or(newest_revision),
                s.answers_only ? 0 : parse_client_caps(request.message[scan.capabilities]));
  answers_.result(request, initialize_result(s));
}

std::string Router::initialize_result(const Session &s) const {
  const Expose &e = profile_.expose;
  std::string result = R"({"protocolVersion":")";
  result.append(revisions[s.revision]).append(R"(","capabilities":{)");
  const auto capability = [&](std::string_view name, std::string_view members) {
    if (result.back() != '{') result += ',';
    result.append("\"").append(name).append("\":{").append(members).append("}");
  };
  const std::string_view changed = e.list_changed && !s.answers_only ? R"("listChanged":true)" : "";
  if (e.tools) capability("tools", changed);
  if (e.resources) {
    std::string members = e.subscribe ? R"("subscribe":true)" : "";
    if (!changed.empty()) members.append(members.empty() ? "" : ",").append(changed);
    capability("resources", members);
  }
  if (e.prompts) capability("prompts", changed);
  if (e.logging) capability("logging", "");
  if (e.completions && s.revision >= 1) capability("completions", "");
  result.append(R"(},"serverInfo":{"name":)");
  mcp::append_quoted(&result, profile_.server_name);
  result.append(R"(,"version":")").append(version_text).append("\"}");
  const std::string instructions = instructions_of(*s.view);
  if (!instructions.empty()) {
    result.append(R"(,"instructions":)");
    mcp::append_quoted(&result, std::string_view(instructions).substr(0, instructions.size() - 1));
  }
  return result.append("}");
}

// The servers' own, as far as they have answered; each ends with a line feed.
std::string Router::instructions_of(const View &view) {
  constexpr std::size_t most = 16'384;
  std::string text = first_start_text(view);
  for (const Lane *lane : view.lanes) {
    if (lane->instructions().empty()) continue;
    if (text.size() + lane->instructions().size() > most) break;
    if (view.lanes.size() > 1) text.append("## ").append(lane->upstream().name()).append("\n");
    text.append(lane->instructions()).append("\n");
  }
  return text;
}

// Names the servers that have never run here and are not ready: their programs may be on the way. A
// client that lists once would take their absence for good.
std::string Router::first_start_text(const View &view) {
  constexpr std::size_t most = 20;
  std::string names;
  std::size_t count = 0;
  for (const Lane *lane : view.lanes) {
    const ServerDef &def = lane->upstream().def();
    const bool first = !def.kept.definition.empty() && def.kept.lists.empty();
    if (!first || def.type != "stdio" || lane->lazy() || lane->listed() || lane->settled())
      continue;
    if (++count > most) continue;
    names.append(names.empty() ? "" : ", ").append(def.name);
  }
  if (count > most) names += " and " + std::to_string(count - most) + " more";
  if (count == 0) return {};
  return "Started for the first time, and possibly still being downloaded: " + names +
         ". Their tools are listed as soon as they are ready; list the tools again to see them.\n";
}

// The first handshake, or one that starts a session anew: then calls under way go on, and what the
// client had asked for lasts no longer. A session with servers of its own keeps its capabilities:
// others would start those servers anew, under its calls and as often as it likes.
void Router::begin_session(Session &s, std::uint8_t revision, ClientCaps caps) {
  const bool own = s.view != nullptr && s.view->session != 0;
  const bool stays = own || (s.view != nullptr && s.caps == caps);
  s.revision = revision;
  if (!own) s.caps = caps;
  s.initialized = true;
  s.log_level = -1;
  s.listed = 0;
  desk_.forget_session(s.handle);
  subscriptions_.forget_all(s);
  s.to_subscribe.clear();
  save(s);
  if (stays) return;
  std::vector<View::Waiter> waiters = Views::take_waiters(s);
  if (s.view != nullptr) {
    asks_.session_ended(s.handle);
    views_.leave(s);
  }
  views_.put_waiters(views_.join(s), std::move(waiters));
}

void Router::call(Session &s, Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  CallInHand hand{request.message, {}, {}, {}};
  if (!targets_.find(s, request, &hand.target)) return;
  if (is_subscription(scan.method)) {
    const auto refusal = subscriptions_.refusal(s, *hand.target.lane, scan.method);
    if (refusal.error_code != 0) return answers_.error(request, refusal.error_code, refusal.text);
  }
  calls_.begin(s, request, hand);
}

void Router::set_log_level(Session &s, Incoming &request) {
  const mcp::Scan &scan = *request.message.scan;
  std::string scratch;
  const int level = scan.level.empty()
                        ? -1
                        : parse_log_level(mcp::unquote(request.message[scan.level], &scratch));
  if (level < 0) {
    return answers_.error(request, code::invalid_params,
                          "params.level must be one of debug, info, notice, warning, error, "
                          "critical, alert, emergency");
  }
  s.log_level = level;
  save(s);
  for (Lane *lane : s.view->lanes) Views::update_log_level(*lane);
  answers_.result(request, "{}");
}

void Router::handle_notification(Session &s, const Message &message) {
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
      return;  // what this gateway does not know: nothing to answer
  }
}

// Of an ask: under the upstream's own token.
void Router::pass_progress(Session &s, const Message &message) {
  const Asks::Progress progress = asks_.progress_of(s, message);
  if (progress.lane == nullptr) return;
  Splice splice(message.bytes);
  splice.replace(message.scan->token, progress.token);
  const bh_str *parts = splice.parts();
  if (parts == nullptr) return message_lost(*progress.lane, message.scan->method);
  notifications_.to_server(*progress.lane, s, message, parts, splice.count());
}

void Router::pass_roots_changed(Session &s, const Message &message) {
  if (s.view == nullptr) return;
  const bh_str part = bh::str(message.bytes);
  for (Lane *lane : s.view->lanes) {
    if (lane->session() == s.handle && (lane->caps() & cap::roots_changed) != 0) {
      notifications_.to_server(*lane, s, message, &part, 1);
    }
  }
}

// The client has given a request up: it ends here, and the upstream is told with the client's own
// words. The place that waited for the answer is released without one.
void Router::cancel(Session &s, std::string_view message, const mcp::Scan &scan) {
  const std::string_view id = scan.request_id.in(message);
  if (id.empty()) return;
  for (Exchange *e = s.exchanges.head; e != nullptr; e = e->session_next) {
    if (e->client_id == id) return calls_.cancel(*e, {message, &scan});
  }
  if (const auto reply = views_.cancel_waiting(s, id)) answers_.none(*reply);
}

}  // namespace bulkhead
