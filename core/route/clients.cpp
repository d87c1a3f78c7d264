#include "route/clients.hpp"

#include <sys/random.h>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/messages.hpp"
#include "bulkhead/cpp/text.hpp"
#include "route/calls.hpp"

namespace bulkhead {
namespace {

// Drops the messages of a session whose client is gone, until the session is closed.
class NoClient final : public ClientEnd {
 public:
  static NoClient &instance() {
    static NoClient no_client;
    return no_client;
  }
  void send(const bh_outgoing &) override {}
  void session_ended(bh_session, std::string_view) override {}
};

std::string new_trace_id() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return {};
  return bh::hex({reinterpret_cast<const char *>(bytes), sizeof bytes});
}

bool has_headers(const bh_incoming &in) {
  return (in.flags & BH_INCOMING_HEADERS) != 0;
}

// Called when the session's request is no longer pending.
void uncount(Session *s) {
  if (std::exchange(s->counted, false)) --s->load->requests;
}

bool is_peer_of(const Session &s, const bh_peer &peer) {
  return bh::view(peer.transport) == s.transport && bh::view(peer.principal) == s.principal;
}

}  // namespace

Clients::Clients(Needs needs) : needs_(std::move(needs)) {
  needs_.answers.on_sessionless_answer([this](Session &s) { end_sessionless(s); });
}

Clients::~Clients() {
  needs_.reactor.forget(this);
}

bh_status Clients::open(ClientEnd &end, const bh_peer &peer, bh_session *out, bh_error *error) {
  if (ending_) return bh::fail(error, BH_E_UNAVAILABLE, "the gateway is stopping");
  if (count() >= needs_.limits.sessions) {
    return bh::fail(error, BH_E_LIMIT,
                    "too many sessions are open (limits.sessions = " +
                        std::to_string(needs_.limits.sessions) + ")");
  }
  *out = add(end, peer, nullptr).handle;
  return BH_OK;
}

Session &Clients::add(ClientEnd &end, const bh_peer &peer, std::shared_ptr<ClientLoad> load) {
  Session &s = needs_.sessions.open(end, peer, needs_.reactor.now_ns(), std::move(load));
  if (needs_.recorder.active()) s.trace_id = new_trace_id();
  return s;
}

void Clients::set_process_name(bh_session handle, std::string_view name) {
  if (Session *s = needs_.sessions.find(handle)) s->process_name = name;
}

std::optional<Clients::Facts> Clients::facts(bh_session handle) const {
  const Session *s = needs_.sessions.find(handle);
  if (s == nullptr || !s->initialized) return std::nullopt;
  return Facts{s->revision, s->caps, s->principal};
}

std::vector<ClientStatus> Clients::list() const {
  std::vector<ClientStatus> out;
  needs_.sessions.for_each([&out](const Session &s) {
    if (s.is_sessionless()) return;
    auto at = std::find_if(out.begin(), out.end(), [&s](const ClientStatus &one) {
      return one.claimed_name == text_of(s.claimed_name) && one.process_name == s.process_name &&
             one.transport == s.transport && one.protocol == s.protocol();
    });
    if (at == out.end()) {
      if (out.size() == ClientStatus::max_listed) return;
      at = out.insert(at, {std::string(text_of(s.claimed_name)), s.process_name, s.transport,
                           std::string(s.protocol())});
    }
    ++at->sessions;
    at->calls += s.calls;
  });
  recent_.append_to(&out, needs_.reactor.now_ns());
  return out;
}

// ---- messages --------------------------------------------------------------------------------

bh_status Clients::deliver(bh_session handle, std::uint64_t stream, std::string_view message,
                           bh_delivery *out, const WireHeaders *headers) {
  Session *s = needs_.sessions.find(handle);
  if (s == nullptr) return BH_STALE;
  out->kind = BH_DELIVERED_NOTHING;
  out->flags = 0;
  const ReplyTo reply{handle, stream, 0};
  if (needs_.messages.handle(*s, reply, message, out, headers)) out->kind = BH_DELIVERED_ANSWER;
  if (const Session *still = needs_.sessions.find(handle); still != nullptr && still->ready) {
    out->flags |= BH_DELIVERED_READY;
  }
  needs_.journal.commit(handle);
  return BH_OK;
}

// Checks the headers, stream and peer of a message from a transport. Returns BH_OK if they are
// valid.
bh_status Clients::check_incoming(const ClientEnd &end, const bh_incoming &in, bh_error *error) {
  if (const bh_status s = bh::check_headers(bh::headers(in), error); s != BH_OK) return s;
  if (in.session == 0) {
    if (in.peer == nullptr) return bh::fail(error, BH_E_INVALID, "no peer and no session");
    if (!sessionless_.holds(end, in.stream)) return BH_OK;
    return bh::fail(error, BH_E_INVALID,
                    "stream " + std::to_string(in.stream) + " is already open");
  }
  const Session *s = in.peer == nullptr ? nullptr : needs_.sessions.find(in.session);
  if (s == nullptr || is_peer_of(*s, *in.peer)) return BH_OK;
  return bh::fail(error, BH_E_INVALID, "the peer differs from the session's peer");
}

bh_status Clients::deliver_message(ClientEnd &end, const bh_incoming &in, bh_delivery *out) {
  bh_error error = bh::make_error();
  if (check_incoming(end, in, &error) != BH_OK) {
    needs_.log(BH_LOG_PLUGIN_MISBEHAVES,
               "a message from a transport was rejected: " + std::string(bh::text(error)));
    return BH_E_INVALID;
  }
  if (in.session != 0) {
    const WireHeaders headers = bh::headers(in);
    return deliver(in.session, in.stream, bh::view(in.message), out,
                   has_headers(in) ? &headers : nullptr);
  }
  if (ending_) return BH_E_UNAVAILABLE;
  if (sessionless_count_ >= needs_.limits.sessions) return BH_E_LIMIT;
  return deliver_sessionless(end, in, out);
}

bh_status Clients::deliver_sessionless(ClientEnd &end, const bh_incoming &in, bh_delivery *out) {
  const std::uint64_t idle_ns = needs_.limits.session_idle_ms * 1'000'000u;
  Session &s = add(end, *in.peer, loads_.of(*in.peer, needs_.reactor.now_ns(), idle_ns));
  const bh_session handle = s.handle;
  s.sessionless = Session::Sessionless::in_delivery;
  s.stream = in.stream;
  s.scope = scopes_.of(s.transport, s.principal, handle);
  s.input_ended = true;
  s.handshake_optional = false;
  ++sessionless_count_;
  sessionless_.add(end, in.stream, handle);
  out->kind = BH_DELIVERED_NOTHING;
  out->flags = 0;
  const WireHeaders headers = bh::headers(in);
  if (needs_.messages.handle(s, {handle, in.stream, 0}, bh::view(in.message), out,
                             has_headers(in) ? &headers : nullptr)) {
    out->kind = BH_DELIVERED_ANSWER;
  }
  Session *still = needs_.sessions.find(handle);
  if (still == nullptr) return BH_OK;
  const bool begins = still->sessionless == Session::Sessionless::begins_session;
  const bool waits = out->kind == BH_DELIVERED_ANSWER && sessionless_.holds(end, in.stream);
  still->sessionless = Session::Sessionless::waits;
  if (!waits) close(handle, BH_SESSION_GONE);
  return begins ? BH_E_SESSION_LOST : BH_OK;
}

bool Clients::count_request(Session &s, const Incoming &request) const {
  // The class Listens limits the number of these requests.
  if (request.message.scan->method == mcp::Method::subscriptions_listen) return true;
  if (s.load->requests >= needs_.limits.in_flight_per_session) return false;
  s.counted = true;
  ++s.load->requests;
  return true;
}

Session *Clients::open_request(Session &connection, const Incoming &request) {
  if (sessionless_count_ >= needs_.limits.sessions) return nullptr;
  Session &s = add_like(connection);
  if (!count_request(s, request)) {
    --sessionless_count_;
    needs_.sessions.erase(s.handle);
    return nullptr;
  }
  s.connection = connection.handle;
  s.stream = request.reply.stream;
  s.request_id = request.id();
  s.scope = RequestScopes::of(connection.handle);
  connection.requests.push_back(s.handle);
  return &s;
}

// Opens a session for a sessionless request from the same client as `other`.
Session &Clients::add_like(const Session &other) {
  bh_peer peer{};
  peer.size = sizeof peer;
  peer.flags = other.answers_only ? std::uint32_t{BH_PEER_ANSWERS_ONLY} : 0u;
  peer.transport = bh::str(other.transport);
  peer.address = bh::str(other.address);
  peer.principal = bh::str(other.principal);
  peer.process_name = bh::str(other.process_name);
  peer.max_message_bytes = other.max_message_bytes;
  Session &s = add(*other.end, peer, other.load);
  s.sessionless = Session::Sessionless::waits;
  s.input_ended = true;
  ++sessionless_count_;
  return s;
}

Session *Clients::hand_over(Session &s, ClientEnd &end) {
  if (s.end == &NoClient::instance() || s.closing) return nullptr;
  Session &request = add_like(s);
  request.connection = s.connection;
  request.stream = s.stream;
  request.request_id = s.request_id;
  request.scope = s.scope;
  request.claimed_name = s.claimed_name;
  request.has_sessionless = s.has_sessionless;
  request.calls = std::exchange(s.calls, 0);
  request.counted = std::exchange(s.counted, false);
  if (s.connection == 0) {
    sessionless_.take(*s.end, s.stream);
    sessionless_.add(*s.end, s.stream, request.handle);
  } else if (Session *connection = needs_.sessions.find(s.connection)) {
    std::replace(connection->requests.begin(), connection->requests.end(), s.handle,
                 request.handle);
  }
  s.end = &end;
  s.connection = 0;
  s.handed_over = true;
  return &request;
}

void Clients::stream_gone(const ClientEnd &end, std::uint64_t stream) {
  const bh_session handle = sessionless_.take(end, stream);
  if (handle != 0) close(handle, BH_SESSION_GONE);
}

// Called before the response to a sessionless message is sent. The response ends the stream. The
// session ends at the end of the current iteration of the event loop, unless deliver_sessionless()
// is about to end it.
void Clients::end_sessionless(Session &s) {
  uncount(&s);
  if (s.connection == 0) {
    sessionless_.take(*s.end, s.stream);
  } else if (Session *connection = needs_.sessions.find(s.connection)) {
    std::erase(connection->requests, s.handle);
    connection->calls += s.calls;
  }
  if (s.sessionless == Session::Sessionless::waits) close(s.handle, BH_SESSION_GONE);
}

// ---- ends ------------------------------------------------------------------------------------

void Clients::close(bh_session handle, std::uint32_t how) {
  Session *s = needs_.sessions.find(handle);
  if (s == nullptr) return;
  if (needs_.answers.sending() || needs_.loop.running()) return close_later(*s, how);
  if (how == BH_SESSION_INPUT_ENDED) {
    end_input(*s);
  } else {
    how == BH_SESSION_EVICTED ? needs_.journal.evict(*s) : needs_.journal.end(*s);
    end(*s);
  }
  needs_.on_idle();
}

// Closes a session at the end of the current iteration of the event loop. Used if close() was
// called inside a transport's send(), whose caller may be iterating over sessions, or inside a step
// of a call. In the second case, the session's calls stop after the step. Unless only the input has
// ended, the transport may release the session's ClientEnd immediately.
void Clients::close_later(Session &s, std::uint32_t how) {
  if (how != BH_SESSION_INPUT_ENDED) {
    leave_client(s);
    for (const bh_session handle : s.requests) {
      if (Session *request = needs_.sessions.find(handle)) leave_client(*request);
    }
  }
  closing_.emplace_back(s.handle, how);
  if (closing_.size() > 1) return;
  needs_.reactor.defer(this, bh::callback<&Clients::close_pending>(this));
}

void Clients::leave_client(Session &s) {
  s.end = &NoClient::instance();
  if (needs_.loop.running()) needs_.ends.end_session(s);
}

void Clients::close_pending() {
  for (const auto &[handle, how] : std::exchange(closing_, {})) close(handle, how);
}

// The client can no longer answer asks, so the servers receive refusals and decide how to proceed.
// The client's calls continue, except that calls that wait for approval are refused.
void Clients::end_input(Session &s) {
  s.input_ended = true;
  needs_.asks.session_ended(s.handle);
  needs_.calls.withdraw_questions(s);
  for (const bh_session handle : std::vector<bh_session>(s.requests)) {
    if (const Session *request = needs_.sessions.find(handle)) {
      needs_.calls.withdraw_questions(*request);
    }
  }
}

void Clients::end(Session &s) {
  s.closing = true;
  uncount(&s);
  while (!s.requests.empty()) {
    Session *request = needs_.sessions.find(s.requests.back());
    s.requests.pop_back();
    if (request != nullptr) end(*request);
  }
  if (Session *connection = needs_.sessions.find(s.connection)) {
    std::erase(connection->requests, s.handle);
  }
  needs_.listens.ended(s);
  needs_.desk.forget_session(s.handle);
  needs_.asks.session_ended(s.handle);
  needs_.journal.forget(s);
  needs_.ends.end_session(s);
  needs_.subscriptions.forget_all(s);
  needs_.views.drop_waiters(s);
  needs_.answers.batches().forget_session(s);
  needs_.views.leave(s);
  needs_.inputs.ended(s);
  if (s.is_sessionless()) {
    --sessionless_count_;
    const bool alone = s.connection == 0 && !s.handed_over;
    if (alone && s.has_sessionless) recent_.add(s, needs_.reactor.now_ns());
  } else {
    needs_.views.end_scope(RequestScopes::of(s.handle));
  }
  needs_.sessions.erase(s.handle);
}

void Clients::end_all(std::string_view reason) {
  ending_ = true;
  const std::vector<bh_session> handles = needs_.sessions.handles();
  for (const bh_session handle : handles) {
    Session *s = needs_.sessions.find(handle);
    if (s == nullptr || !s->is_sessionless()) continue;
    if (needs_.listens.has(*s)) {
      needs_.listens.finish(*s);
    } else {
      needs_.answers.unrecorded_error({handle, s->stream, 0}, s->request_id, code::internal_error,
                                      reason, 503);
    }
    end(*s);
  }
  for (const bh_session handle : handles) {
    Session *s = needs_.sessions.find(handle);
    if (s == nullptr) continue;
    ClientEnd *to = s->end;
    end(*s);
    to->session_ended(handle, reason);
  }
}

}  // namespace bulkhead
