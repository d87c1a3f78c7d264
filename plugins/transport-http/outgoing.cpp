// Sends the host's messages to clients: responses and events.
#include "lost_answer.hpp"
#include "server.hpp"

namespace transport_http {

namespace {

std::span<const bh_str> parts_of(const bh_outgoing &message) noexcept {
  return {message.parts, message.part_count};
}

std::string data_of(const bh_outgoing &message) {
  std::string data;
  std::size_t n = 0;
  for (const bh_str &part : parts_of(message)) n += part.n;
  data.reserve(n);
  for (const bh_str &part : parts_of(message)) data += bh::view(part);
  return data;
}

}  // namespace

bh_status Server::send(const bh_outgoing &message) {
  if (message.session == 0) {
    const bool before = std::exchange(in_send_, true);
    const bh_status status = send_sessionless(message);
    in_send_ = before;
    return status;
  }
  Session *session = sessions_.find(message.session);
  if (session == nullptr) return BH_STALE;
  if (session->hold) {
    session->held.push_back({message.kind, message.stream, message.http_status, data_of(message)});
    return BH_OK;
  }
  const bool before = std::exchange(in_send_, true);
  const bh_status status = session->kind == Session::Kind::http_sse
                               ? send_http_sse(*session, message)
                               : send_now(*session, message);
  in_send_ = before;
  return status;
}

bh_status Server::send_now(Session &session, const bh_outgoing &message) {
  if (message.stream == 0) return send_general(session, message);
  Stream *stream = session.find(message.stream);
  if (stream == nullptr) return BH_STALE;
  const bool answer = message.kind == BH_OUT_ANSWER;
  const bh_status status = answer && !stream->events ? send_answer(session, *stream, message)
                                                     : send_on_stream(session, *stream, message);
  if (answer) {
    session.last_used_ns = host_.now_ns();
    // If this message is sent while deliver() is running, deliver() closes the session.
    if (!session.kept && session.streams.empty() && in_send_) close_session(session);
  }
  return status;
}

bh_status Server::send_answer(Session &session, Stream &stream, const bh_outgoing &message) {
  Connection &c = *stream.connection;  // not null: a broken connection would have ended the stream
  session.erase(stream.number);
  c.attached = {};
  const std::string extra = session_line(session);
  respond(c, {.status = message.http_status == 0 ? 200 : static_cast<int>(message.http_status),
              .extra = extra,
              .parts = parts_of(message)});
  return c.doomed() ? BH_STALE : BH_OK;
}

// Returns the header line with the session ID. The line is sent only once, in the response to
// `initialize`; otherwise, the result is empty.
std::string Server::session_line(Session &session) {
  if (!session.kept || session.announced) return {};
  session.announced = true;
  return "Mcp-Session-Id: " + session.id.text() + session.sealed + "\r\n";
}

bool Server::upgrade(Session &session, Stream &stream) {
  stream.events = true;
  Connection &c = *stream.connection;
  const std::string extra = session_line(session);
  const Event prime{.stream = stream.number, .sequence = 0};
  return begin_events(c, extra, c.reply.primed && session.kept ? &prime : nullptr);
}

bh_status Server::send_on_stream(Session &session, Stream &stream, const bh_outgoing &message) {
  if (!stream.events) upgrade(session, stream);
  Connection *c = stream.connection;
  const bool last = message.kind == BH_OUT_ANSWER;
  const Event event{.has_id = session.kept,
                    .stream = stream.number,
                    .sequence = ++stream.sequence,
                    .parts = parts_of(message)};
  remember(session, event.stream, event.sequence, message, c != nullptr);
  if (last) session.erase(event.stream);
  if (c == nullptr) return BH_OK;
  if (last) c->attached = {};
  const bool sent = send_event(*c, event, last);
  // If the connection is broken, the client can resume the stream, provided that it knows the
  // session ID.
  return sent || session.kept ? BH_OK : BH_STALE;
}

bh_status Server::send_general(Session &session, const bh_outgoing &message) {
  if (!session.kept || message.kind == BH_OUT_ANSWER) return BH_STALE;
  const std::uint32_t sequence = ++session.general_sequence;
  Connection *c = session.general;
  remember(session, 0, sequence, message, c != nullptr);
  if (c == nullptr) return BH_OK;
  session.general_written = sequence;
  send_event(*c, {.has_id = true, .stream = 0, .sequence = sequence, .parts = parts_of(message)});
  return BH_OK;
}

void Server::remember(Session &session, std::uint64_t stream, std::uint32_t sequence,
                      const bh_outgoing &message, bool written) {
  if (!session.kept) return;
  const std::uint64_t bound = transport_->limits->event_buffer_bytes;
  std::string data = data_of(message);
  // If the client received neither a response nor an error after resuming, it would wait forever.
  const bool lost = message.kind == BH_OUT_ANSWER && data.size() + EventRing::overhead > bound;
  if (lost) data = lost_answer(data);
  const std::uint32_t dropped =
      session.ring.add({stream, sequence, written, host_.now_ns(), std::move(data)}, bound);
  if (dropped > 0 || lost) count(events_dropped_, dropped + (lost ? 1 : 0));
}

// Sends the messages that were held back during deliver(), because it was not yet known whether the
// session would have an ID.
void Server::replay_held(Session &session) {
  for (const HeldMessage &held : std::exchange(session.held, {})) {
    const bh_str part = bh::str(held.data);
    bh_outgoing message{};
    message.size = sizeof message;
    message.kind = held.kind;
    message.session = session.handle;
    message.stream = held.stream;
    message.http_status = held.http_status;
    message.part_count = held.data.empty() ? 0 : 1;
    message.parts = &part;
    send_now(session, message);
  }
}

// Converts a slow response to an event stream. Proxies can then see that the connection is alive,
// and the client can resume the stream. If the response is already an event stream, sends a
// comment.
void Server::on_quiet(Connection &c) {
  if (c.attached.role == Attachment::Role::sessionless) {
    if (!c.streaming()) begin_events(c, {}, nullptr);
    return static_cast<void>(send_comment(c));
  }
  Session *session = c.attached.session;
  if (session == nullptr || session->ended) return;
  if (c.attached.role == Attachment::Role::post) {
    Stream *stream = session->find(c.attached.stream);
    if (stream != nullptr && !stream->events) upgrade(*session, *stream);
  }
  if (c.streaming()) send_comment(c);
}

}  // namespace transport_http
