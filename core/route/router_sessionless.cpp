// Messages as transports deliver them, and those without a session: each is handled in a session
// that holds this one message and ends with its answer.
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/messages.hpp"
#include "route/router.hpp"

namespace bulkhead {
namespace {

bool is_peer_of(const Session &s, const bh_peer &peer) {
  return bh::view(peer.transport) == s.transport && bh::view(peer.principal) == s.principal;
}

}  // namespace

// BH_OK: the struct is what bh_incoming allows.
bh_status Router::check_incoming(const ClientEnd &end, const bh_incoming &in, bh_error *error) {
  if (const bh_status s = bh::check_headers(bh::headers(in), error); s != BH_OK) return s;
  if (in.session == 0) {
    if (in.peer == nullptr) return bh::fail(error, BH_E_INVALID, "no peer and no session");
    if (!sessionless_.holds(end, in.stream)) return BH_OK;
    return bh::fail(error, BH_E_INVALID,
                    "stream " + std::to_string(in.stream) + " is open already");
  }
  const Session *s = in.peer == nullptr ? nullptr : session(in.session);
  if (s == nullptr || is_peer_of(*s, *in.peer)) return BH_OK;
  return bh::fail(error, BH_E_INVALID, "another peer than the session's");
}

bh_status Router::deliver_message(ClientEnd &end, const bh_incoming &in, bh_delivery *out) {
  bh_error error = bh::make_error();
  if (check_incoming(end, in, &error) != BH_OK) {
    log(BH_LOG_PLUGIN_MISBEHAVES,
        "a transport delivered a message that was refused: " + std::string(bh::text(error)));
    return BH_E_INVALID;
  }
  if (in.session != 0) return deliver(in.session, in.stream, bh::view(in.message), out);
  if (ending_) return BH_E_UNAVAILABLE;
  if (sessionless_count_ >= limits().sessions) return BH_E_LIMIT;
  return deliver_sessionless(end, in, out);
}

bh_status Router::deliver_sessionless(ClientEnd &end, const bh_incoming &in, bh_delivery *out) {
  Session &s = add_session(end, *in.peer);
  const bh_session handle = s.handle;
  s.sessionless = Session::Sessionless::in_delivery;
  s.stream = in.stream;
  s.input_ended = true;
  s.handshake_optional = false;
  ++sessionless_count_;
  sessionless_.add(end, in.stream, handle);
  out->kind = BH_DELIVERED_NOTHING;
  out->flags = 0;
  if (handle_message(s, {handle, in.stream, 0}, bh::view(in.message), out)) {
    out->kind = BH_DELIVERED_ANSWER;
  }
  Session *still = session(handle);
  if (still == nullptr) return BH_OK;
  const bool begins = still->sessionless == Session::Sessionless::begins_session;
  const bool waits = out->kind == BH_DELIVERED_ANSWER && sessionless_.holds(end, in.stream);
  still->sessionless = Session::Sessionless::waits;
  if (!waits) session_close(handle, BH_SESSION_GONE);
  return begins ? BH_E_SESSION_LOST : BH_OK;
}

void Router::stream_gone(const ClientEnd &end, std::uint64_t stream) {
  const bh_session handle = sessionless_.take(end, stream);
  if (handle != 0) session_close(handle, BH_SESSION_GONE);
}

// Before its answer is sent: the stream ends with it, and the session at the end of the turn unless
// deliver_sessionless() is about to end it.
void Router::end_sessionless(Session &s) {
  sessionless_.take(*s.end, s.stream);
  if (s.sessionless == Session::Sessionless::waits) session_close(s.handle, BH_SESSION_GONE);
}

}  // namespace bulkhead
