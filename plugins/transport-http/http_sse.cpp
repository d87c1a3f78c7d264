// Implements the HTTP+SSE transport of revision 2024-11-05. Each session has one event stream,
// which carries all messages to the client. The client sends each message in a POST.
#include "server.hpp"

namespace transport_http {

namespace {

// Returns the value of `sessionId` in the query. The value consists of hex digits, so it need not
// be decoded.
std::string_view session_of(std::string_view query) noexcept {
  constexpr std::string_view name = "sessionId=";
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    if (pair.starts_with(name)) return pair.substr(name.size());
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
  }
  return {};
}

}  // namespace

void Server::open_http_sse(Connection &c) {
  Session *session = open_session(c);
  if (session == nullptr) return;
  session->kind = Session::Kind::http_sse;
  session->kept = session->announced = true;
  session->general = &c;
  sessions_.publish(*session);
  c.attached = {Attachment::Role::http_sse, session, 0};
  begin_events(c, {}, nullptr);
  const std::string text = config_.message_path + "?sessionId=" + session->id.text();
  const bh_str part = bh::str(text);
  send_event(c, {.name = "endpoint", .parts = {&part, 1}});
}

void Server::post_http_sse(Connection &c, const RequestFeed &feed) {
  Session *session = sessions_.find(session_of(feed.text(feed.head().query)));
  if (session == nullptr || session->kind != Session::Kind::http_sse) {
    return respond_error(c, 404, -32001, "Session not found");
  }
  if (!is_json(feed)) {
    return respond_error(c, 415, -32000,
                         "Unsupported Media Type: Content-Type must be application/json");
  }
  bh_delivery delivery{};
  delivery.size = sizeof delivery;
  const McpHeaders headers(feed.head_text());
  const bh_status status =
      hand_over({.session = session->handle, .stream = 0, .peer = nullptr, .headers = headers},
                feed.body(), &delivery);
  if (status != BH_OK) {
    const bool gone = status == BH_STALE;
    respond_error(c, gone ? 404 : 500, gone ? -32001 : -32000,
                  gone ? "Session not found" : "Internal error");
    if (gone && !session->ended) close_session(*session);
    return;
  }
  session->ready = session->ready || (delivery.flags & BH_DELIVERED_READY) != 0;
  session->last_used_ns = host_.now_ns();
  const bh_str part = bh::str("Accepted");
  respond(c, {.status = 202, .content_type = "text/plain", .parts = {&part, 1}});
}

bh_status Server::send_http_sse(Session &session, const bh_outgoing &message) {
  Connection *c = session.general;
  if (c == nullptr || message.stream != 0) return BH_STALE;
  if (message.part_count == 0) return BH_OK;  // the request ends without a response
  const Event event{.name = "message", .parts = {message.parts, message.part_count}};
  // If the connection breaks or its queue is full, lost() ends the session.
  return send_event(*c, event) ? BH_OK : BH_E_LIMIT;
}

}  // namespace transport_http
