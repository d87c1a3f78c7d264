#include "route/notifications.hpp"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "bulkhead/cpp/basics.hpp"
#include "mcp/scan.hpp"
#include "route/call_input.hpp"
#include "route/protocol.hpp"
#include "route/splice.hpp"
#include "route/upstream.hpp"
#include "route/view.hpp"

namespace bulkhead {
namespace {

std::string method_of(const Message &message) {
  const mcp::Scan &scan = *message.scan;
  if (scan.method != mcp::Method::other) return std::string(mcp::to_string(scan.method));
  std::string scratch;
  return std::string(mcp::unquote(message[scan.method_text], &scratch));
}

std::string joined(const bh_str *parts, std::uint32_t count) {
  std::string out;
  for (std::uint32_t i = 0; i < count; ++i) out.append(bh::view(parts[i]));
  return out;
}

JudgedEvent event_of(JudgedEvent::Kind kind, const Lane &lane, const Message &message,
                     const bh_str *parts, std::uint32_t count) {
  JudgedEvent event;
  event.kind = kind;
  event.method = message.scan->method;
  event.method_text = method_of(message);
  event.server = lane.upstream().name();
  event.message = joined(parts, count);
  return event;
}

// Returns false if the progress must not be forwarded. A server counts from the start again if the
// call is sent again, but the progress that the client receives must increase.
bool increases(CallInput *input, const Message &message) {
  if (input == nullptr) return true;
  const std::string_view text = mcp::member(message[message.scan->params], "progress");
  double progress = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), progress);
  if (error != std::errc() || end != text.data() + text.size()) return true;
  const bool sent_again = input->rounds != 0 || input->headers_renewed;
  if (sent_again && progress <= input->progress) return false;
  input->progress = std::max(input->progress, progress);
  return true;
}

// Returns the address to which a message is sent: the stream of the call that caused it, or the
// client's general stream if `call` is null.
ReplyTo reply_of(const Session &client, const Call *call) {
  return {client.handle, call != nullptr ? call->request.reply.stream : 0, 0};
}

// Returns true if the client has set a log level that admits this message.
bool wants(const Session &client, int level) {
  return client.log_level >= 0 && (level < 0 || level >= client.log_level);
}

// A client with a session that has not set a log level receives all log messages. A sessionless
// request without a log level receives none.
bool admits(const Session &client, int level) {
  return wants(client, level) || (client.log_level < 0 && !client.is_sessionless());
}

}  // namespace

void Notifications::progress(Lane &lane, const Message &message) {
  const Exchange *e = needs_.exchanges.get(parse_number(message[message.scan->token]));
  const Call *call = e != nullptr && e->lane == &lane ? e->call : nullptr;
  if (call == nullptr || call->request.progress_token.empty() ||
      !increases(call->input.get(), message)) {
    ++needs_.counters.dropped_events;
    return;
  }
  Splice splice(message.bytes);
  splice.replace(message.scan->token, call->request.progress_token);
  const bh_str *parts = splice.parts();
  if (parts == nullptr) return needs_.on_lost(lane, message.scan->method);
  to_client(call->request.reply, lane, call, message, parts, splice.count());
}

void Notifications::log_line(Lane &lane, std::uint64_t hint, const Message &message) {
  std::string scratch;
  const mcp::Range range = message.scan->level;
  const int level = range.empty() ? -1 : parse_log_level(mcp::unquote(message[range], &scratch));
  Call *call = nullptr;
  const Session *client = needs_.attribution.client_of(lane, hint, &call);
  if (client == nullptr) return log_line_of_nobody(lane, level, message);
  if (!admits(*client, level)) return;
  const bh_str part = bh::str(message.bytes);
  to_client(reply_of(*client, call), lane, hint != 0 ? call : nullptr, message, &part, 1);
}

void Notifications::log_line_of_nobody(Lane &lane, int level, const Message &message) {
  // The recipients are collected first, because a notified client may open or close sessions.
  std::vector<bh_session> clients;
  for (const View *view : lane.views) {
    for (const Session *client : view->clients) {
      if (!client->is_sessionless() && wants(*client, level)) clients.push_back(client->handle);
    }
  }
  if (clients.empty()) ++needs_.counters.dropped_events;
  const bh_str part = bh::str(message.bytes);
  for (const bh_session client : clients) {
    to_client({client, 0, 0}, lane, nullptr, message, &part, 1);
  }
}

void Notifications::other(Lane &lane, std::uint64_t hint, const Message &message) {
  Call *call = nullptr;
  const Session *client = needs_.attribution.client_of(lane, hint, &call);
  if (client == nullptr || client->is_sessionless()) {
    ++needs_.counters.dropped_events;
    return;
  }
  const bh_str part = bh::str(message.bytes);
  to_client(reply_of(*client, call), lane, hint != 0 ? call : nullptr, message, &part, 1);
}

void Notifications::to_client(const ReplyTo &to, const Lane &lane, const Call *call,
                              const Message &message, const bh_str *parts, std::uint32_t count) {
  if (needs_.gate.judges_notifications()) {
    const Session *client = needs_.sessions.find(to.session);
    if (client == nullptr) return;
    JudgedEvent event = event_of(JudgedEvent::Kind::to_client, lane, message, parts, count);
    if (call != nullptr) {
      // Progress is dropped if its call has finished in the meantime, so it needs the call's id.
      // Log messages are forwarded even then.
      if (event.method == mcp::Method::notifications_progress) event.call = call->id;
      if (call->method == mcp::Method::tools_call) event.tool = call->name;
    }
    event.to = to;
    const std::string_view body = message[message.scan->params];
    if (!needs_.events.judge(std::move(event), *client, body)) return;
  }
  needs_.answers.send(to, BH_OUT_EVENT, parts, count);
}

void Notifications::to_server(Lane &lane, const Session &session, const Message &message,
                              const bh_str *parts, std::uint32_t count) {
  if (needs_.gate.judges_notifications()) {
    JudgedEvent event = event_of(JudgedEvent::Kind::to_server, lane, message, parts, count);
    event.lane = lane.handle();
    const std::string_view body = message[message.scan->params];
    if (!needs_.events.judge(std::move(event), session, body)) return;
  }
  lane.send(BH_LANE_NOTIFICATION, parts, count);
}

}  // namespace bulkhead
