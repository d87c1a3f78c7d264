// Handles requests without a session. The host answers each request on a separate stream, which
// exists until the response is sent or the connection is closed.
#include <utility>

#include "server.hpp"

namespace transport_http {

// Delivers a request. Returns false if the message needs a session.
bool Server::deliver_sessionless(Connection &c, const RequestFeed &feed) {
  const McpHeaders headers(feed.head_text());
  if (headers.too_many()) {
    respond_error(c, 431, -32000, "The request has too many Mcp- headers, or they are too large");
    return true;
  }
  const std::uint64_t number = next_sessionless_++;
  sessionless_.emplace(number, &c);
  c.attached = {Attachment::Role::sessionless, nullptr, number};
  const bh_peer peer = peer_of(c);
  bh_delivery delivery{};
  delivery.size = sizeof delivery;
  const bh_status status = hand_over(
      {.session = 0, .stream = number, .peer = &peer, .headers = headers}, feed.body(), &delivery);
  if (status == BH_OK && delivery.kind == BH_DELIVERED_ANSWER) return true;
  sessionless_.erase(number);
  c.attached = {};
  // A host whose minor version is below 2 requires a session for every message.
  if (status == BH_E_SESSION_LOST || status == BH_E_UNSUPPORTED) return false;
  if (status == BH_OK) {
    respond(c, {.status = 202, .parts = {}});
  } else if (status == BH_E_LIMIT || status == BH_E_UNAVAILABLE) {
    respond_error(c, 503, -32000, "Cannot accept another request now", "Retry-After: 5\r\n");
  } else {
    respond_error(c, 500, -32000, "Internal error");
  }
  return true;
}

bh_status Server::send_sessionless(const bh_outgoing &message) {
  const auto at = sessionless_.find(message.stream);
  if (at == sessionless_.end()) return BH_STALE;
  Connection &c = *at->second;
  const std::span<const bh_str> parts{message.parts, message.part_count};
  const bool answer = message.kind == BH_OUT_ANSWER;
  if (answer) {
    sessionless_.erase(at);
    c.attached = {};
  }
  if (answer && !c.streaming()) {
    respond(c, {.status = message.http_status == 0 ? 200 : static_cast<int>(message.http_status),
                .parts = parts});
    return c.doomed() ? BH_STALE : BH_OK;
  }
  if (!c.streaming()) begin_events(c, {}, nullptr);
  return send_event(c, {.parts = parts}, answer) ? BH_OK : BH_STALE;
}

void Server::lost_sessionless(std::uint64_t stream) {
  if (sessionless_.erase(stream) != 0) transport_->stream_gone(host_.ctx(), 0, stream);
}

void Server::end_sessionless() {
  for (const auto &[stream, c] : std::exchange(sessionless_, {})) {
    c->attached = {};
    transport_->stream_gone(host_.ctx(), 0, stream);
  }
}

}  // namespace transport_http
