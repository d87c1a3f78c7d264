// Handles the requests of Streamable HTTP: access control, POST, GET and DELETE.
#include <algorithm>
#include <charconv>

#include "bulkhead/cpp/messages.hpp"

#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/messages.hpp>

#include "server.hpp"

namespace transport_http {

namespace {

using bh::ns_per_ms;
constexpr int error_code = -32000;  // for errors of the transport itself
constexpr int invalid_request = -32600;
constexpr int not_found_code = -32001;
// The first revision without sessions. Revisions are dates, so they are compared as strings.
constexpr std::string_view stateless_revision = "2026-07-28";
// If the current time in nanoseconds is shifted right by this number of bits, the result is greater
// than all stream and event numbers used before, unless a session used more than about 60 a second.
constexpr unsigned later_shift = 24;

struct EventId {
  std::uint64_t stream = 0;
  std::uint32_t sequence = 0;
};

bool parse_event_id(std::string_view text, EventId &out) noexcept {
  const char *const end = text.data() + text.size();
  const auto stream = std::from_chars(text.data(), end, out.stream);
  if (stream.ec != std::errc() || stream.ptr == end || *stream.ptr != '-') return false;
  const auto sequence = std::from_chars(stream.ptr + 1, end, out.sequence);
  return sequence.ec == std::errc() && sequence.ptr == end;
}

std::string_view refusal_text(int status) noexcept {
  switch (status) {
    case 408:
      return "The request took too long to arrive (limits.request_read_ms)";
    case 413:
      return "The message is larger than this server accepts (limits.message_bytes)";
    case 417:
      return "Unknown expectation";
    case 431:
      return "The request head is larger than this server accepts (limits.header_bytes)";
    case 503:
      return "Not enough memory for this request: too much data is arriving. Try again later";
    case 505:
      return "Only HTTP/1.1 is supported";
    default:
      return "Malformed HTTP request";
  }
}

}  // namespace

Server::Route Server::route_of(std::string_view path) const noexcept {
  if (path == config_.path) return Route::streamable;
  if (!config_.sse_path.empty()) {
    if (path == config_.sse_path) return Route::http_sse_stream;
    if (path == config_.message_path) return Route::http_sse_message;
  }
  return Route::none;
}

void Server::on_refused(Connection &c, int status) {
  c.reply = {};
  c.reply.persistent = false;
  // The JSON-RPC error for an oversized message is "invalid request".
  respond_error(c, status, status == 413 ? invalid_request : error_code, refusal_text(status),
                status == 503 ? "Retry-After: 5\r\n" : "");
}

bool Server::on_head(Connection &c, const RequestFeed &feed) {
  c.reply = {};
  c.reply.persistent = false;  // the body of a rejected request is not read
  if (!admit(c, feed)) return false;
  c.reply.persistent = feed.head().persistent() && !draining_;
  return true;
}

void Server::on_request(Connection &c, const RequestFeed &feed) {
  if (!c.reply.admitted) {
    c.reply = {};
    c.reply.persistent = feed.head().persistent() && !draining_;
    if (!admit(c, feed)) return;
  }
  switch (route_of(feed.text(feed.head().path))) {
    case Route::streamable:
      if (feed.head().method == Method::post) return post(c, feed);
      return feed.head().method == Method::get ? get(c, feed) : remove(c, feed);
    case Route::http_sse_stream:
      return open_http_sse(c);
    case Route::http_sse_message:
      return post_http_sse(c, feed);
    case Route::none:
      break;
  }
  respond_error(c, 404, error_code, "Not found");
}

// Sets c.reply. Returns false if the request was rejected and answered.
bool Server::admit(Connection &c, const RequestFeed &feed) {
  const RequestHead &head = feed.head();
  c.reply.body_less = head.method == Method::head;
  c.reply.chunkable = head.minor == 1;
  c.reply.primed = feed.text(Field::revision) >= std::string_view("2025-11-25");
  if (!admit_peer(c, feed)) return false;
  if (head.method == Method::options) {
    preflight(c);
    return false;
  }
  const Route route = route_of(feed.text(head.path));
  if (route == Route::none) {
    respond_error(c, 404, error_code, "Not found");
    return false;
  }
  if (!admit_token(c, feed.text(Field::authorization))) return false;
  if (!admit_method(c, feed, route)) return false;
  return c.reply.admitted = true;
}

bool Server::admit_token(Connection &c, std::string_view authorization) {
  if (!guard_.wants_token() || guard_.token_matches(authorization)) return true;
  const bool wrong = Guard::has_token(authorization);
  respond_error(c, 401, error_code,
                wrong ? "Unauthorized: the bearer token is wrong"
                      : "Unauthorized: a bearer token is required",
                "WWW-Authenticate: Bearer\r\n");
  const std::uint64_t requests = wrong ? wrong_tokens_.add(host_.now_ns()) : 0;
  if (requests == 0) return false;
  std::string text =
      "rejected a request from " + std::string(c.peer()) + " because its bearer token is wrong";
  if (requests > 1) {
    text += ", and " + std::to_string(requests - 1) + " more since the last such message";
  }
  host_.log(BH_LOG_WARN, text);
  return false;
}

bool Server::admit_peer(Connection &c, const RequestFeed &feed) {
  const RequestHead &head = feed.head();
  const bool host_allowed =
      guard_.host_allowed(feed.text(Field::host)) &&
      (head.authority.n == 0 || guard_.host_allowed(feed.text(head.authority)));
  if (!host_allowed) {
    respond_error(c, 403, error_code, "Forbidden: this Host is not allowed (see allowed_hosts)");
    return false;
  }
  if (!head.has(Field::origin)) {
    if (Guard::fetch_site_allowed(feed.text(Field::fetch_site))) return true;
    respond_error(c, 403, error_code,
                  "Forbidden: the Sec-Fetch-Site header shows that a web page sent this request, "
                  "but the Origin header is missing");
    return false;
  }
  const std::string_view origin = feed.text(Field::origin);
  if (!guard_.origin_allowed(origin)) {
    respond_error(c, 403, error_code,
                  "Forbidden: this Origin is not allowed (see allowed_origins)");
    return false;
  }
  c.reply.origin = origin;
  return true;
}

bool Server::admit_method(Connection &c, const RequestFeed &feed, Route route) {
  const Method method = feed.head().method;
  std::string_view allow = "Allow: GET, POST, DELETE, OPTIONS\r\n";
  bool allowed = method == Method::post || method == Method::get || method == Method::del;
  if (route == Route::streamable && feed.text(Field::revision) >= stateless_revision) {
    allow = "Allow: POST, OPTIONS\r\n";  // GET and DELETE are operations on sessions
    allowed = method == Method::post;
  }
  if (route == Route::http_sse_stream) {
    allow = "Allow: GET, OPTIONS\r\n";
    allowed = method == Method::get;
  } else if (route == Route::http_sse_message) {
    allow = "Allow: POST, OPTIONS\r\n";
    allowed = method == Method::post;
  }
  if (!allowed) respond_error(c, 405, error_code, "Method not allowed", allow);
  return allowed;
}

void Server::preflight(Connection &c) {
  std::string_view extra = "Allow: GET, POST, DELETE, OPTIONS\r\n";
  if (!c.reply.origin.empty()) {
    extra =
        "Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS\r\n"
        "Access-Control-Allow-Headers: Authorization, Content-Type, Accept, Last-Event-ID, "
        "Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name\r\n"
        "Access-Control-Max-Age: 7200\r\n";
  }
  respond(c, {.status = 204, .extra = extra, .parts = {}});
}

Session *Server::open_session(Connection &c) {
  const auto id = SessionId::random();
  const bh_peer peer = peer_of(c);
  bh_session handle = 0;
  bh_error error = bh::make_error();
  const auto open = [&] { return transport_->session_open(host_.ctx(), &peer, &handle, &error); };
  bh_status status = id ? open() : BH_E_UNAVAILABLE;
  if (status == BH_E_LIMIT && evict_session()) status = open();
  if (status != BH_OK) {
    std::string text = "Cannot open another session now";
    if (const std::string_view why = bh::text(error); !why.empty()) text.append(": ").append(why);
    respond_error(c, 503, error_code, text, "Retry-After: 5\r\n");
    return nullptr;
  }
  Session &session = sessions_.add(handle, *id);
  session.peer = c.peer_key;
  session.last_used_ns = host_.now_ns();
  want_check(session.last_used_ns + transport_->limits->session_idle_ms * ns_per_ms);
  return &session;
}

bool Server::evict_session() {
  Session *session = eviction_.pick(sessions_, host_.now_ns());
  if (session == nullptr) return false;
  count(sessions_evicted_);
  close_session(*session, BH_SESSION_EVICTED);
  return true;
}

bh_peer Server::peer_of(const Connection &c) const noexcept {
  bh_peer peer{};
  peer.size = sizeof peer;
  peer.transport = bh::str("http");
  peer.address = bh::str(c.peer());
  peer.principal = bh::str(guard_.wants_token() ? "token" : "local");
  return peer;
}

// Resumes a session that was evicted or that existed in the previous process, if the host agrees.
Session *Server::reopen(Connection &c, std::string_view text) {
  const auto id = SessionId::parse(text);
  const std::size_t dot = text.find('.');
  if (resume_ == nullptr || !id || dot == std::string_view::npos) return nullptr;
  const bh_peer peer = peer_of(c);
  bh_session handle = 0;
  bh_error error = bh::make_error();
  const auto open = [&] {
    return resume_->reopen(host_.ctx(), &peer, bh::str(text.substr(0, dot)),
                           bh::str(text.substr(dot + 1)), &handle, &error);
  };
  bh_status status = open();
  if (status == BH_E_LIMIT && evict_session()) status = open();
  if (status != BH_OK) return nullptr;
  Session &session = sessions_.add(handle, *id);
  session.peer = c.peer_key;
  session.ready = session.kept = session.announced = true;
  session.last_used_ns = host_.now_ns();
  // New stream numbers must differ from all numbers that the client may know.
  session.next_stream = 1 + (session.last_used_ns >> later_shift);
  session.general_sequence = session.general_written =
      static_cast<std::uint32_t>(session.next_stream);
  sessions_.publish(session);
  want_check(session.last_used_ns + transport_->limits->session_idle_ms * ns_per_ms);
  return &session;
}

void Server::seal(Session &session) {
  if (resume_ == nullptr) return;
  bh_buf buf{};
  bh_error error = bh::make_error();
  const std::string id = session.id.text();
  if (resume_->seal(host_.ctx(), session.handle, bh::str(id), &buf, &error) != BH_OK) return;
  session.sealed = "." + std::string(bh::Buf(buf).view());
}

// Returns the session that the request names. If there is none, responds with 404 and returns null;
// the client then initializes again.
Session *Server::named_session(Connection &c, const RequestFeed &feed) {
  Session *session = sessions_.find(feed.text(Field::session));
  if (session == nullptr) session = reopen(c, feed.text(Field::session));
  if (session == nullptr || session->kind != Session::Kind::streamable) {
    respond_error(c, 404, not_found_code, "Session not found");
    return nullptr;
  }
  session->last_used_ns = host_.now_ns();
  return session;
}

bool Server::revision_fits(Connection &c, const RequestFeed &feed, const Session &session) {
  if (!feed.head().has(Field::revision)) return true;
  const bh_str revision = bh::str(feed.text(Field::revision));
  if (transport_->check_revision(host_.ctx(), session.handle, revision) == BH_OK) return true;
  respond_error(c, 400, error_code, "Bad Request: unsupported protocol version");
  return false;
}

void Server::post(Connection &c, const RequestFeed &feed) {
  const RequestHead &head = feed.head();
  if (head.has_accept && !(head.accepts_json && head.accepts_events)) {
    return respond_error(
        c, 406, error_code,
        "Not Acceptable: the client must accept application/json and text/event-stream");
  }
  if (!is_json(feed)) {
    return respond_error(c, 415, error_code,
                         "Unsupported Media Type: Content-Type must be application/json");
  }
  // In revisions without sessions, the session header has no meaning.
  const bool fresh = !head.has(Field::session) || feed.text(Field::revision) >= stateless_revision;
  if (fresh && deliver_sessionless(c, feed)) return;
  Session *session = fresh ? open_session(c) : named_session(c, feed);
  if (session == nullptr) return;
  // Without a session, the revision is given in the message and checked by the host.
  if (!fresh && !revision_fits(c, feed, *session)) return;
  deliver(c, *session, feed, fresh);
}

// In requests with a session, headers that exceed the limit are not forwarded. This is acceptable
// because no revision with sessions uses these headers.
bh_status Server::hand_over(const Delivery &with, std::string_view body, bh_delivery *out) {
  bh_incoming message = bh::incoming(with.session, with.stream, body);
  message.peer = with.peer;
  if (!with.headers.too_many()) {
    const std::span<const bh_header> headers = with.headers.all();
    message.flags = BH_INCOMING_HEADERS;
    message.headers = headers.data();
    message.header_count = static_cast<std::uint32_t>(headers.size());
  }
  return transport_->deliver(host_.ctx(), &message, out);
}

void Server::deliver(Connection &c, Session &session, const RequestFeed &feed, bool fresh) {
  const std::uint64_t number = session.next_stream++;
  session.streams.push_back({.number = number, .connection = &c});
  c.attached = {Attachment::Role::post, &session, number};
  session.hold = fresh;
  bh_delivery delivery{};
  delivery.size = sizeof delivery;
  const McpHeaders headers(feed.head_text());
  const bh_status status =
      hand_over({.session = session.handle, .stream = number, .peer = nullptr, .headers = headers},
                feed.body(), &delivery);
  session.hold = false;
  session.ready = session.ready || (delivery.flags & BH_DELIVERED_READY) != 0;
  if (session.ended) return;  // responses have already been sent on its streams
  if (status != BH_OK) {
    session.erase(number);
    c.attached = {};
    const bool gone = status == BH_STALE;
    respond_error(c, gone ? 404 : 500, gone ? not_found_code : error_code,
                  gone ? "Session not found" : "Internal error");
    if (gone || fresh) close_session(session);
    return;
  }
  if (fresh && (delivery.flags & BH_DELIVERED_INITIALIZE) != 0) {
    session.kept = true;
    seal(session);
    sessions_.publish(session);
  }
  if (fresh) replay_held(session);
  if (delivery.kind == BH_DELIVERED_NOTHING) {
    const Stream *stream = session.find(number);
    const bool events = stream != nullptr && stream->events;
    session.erase(number);
    c.attached = {};
    if (events) {
      end_events(c);
    } else {
      respond(c, {.status = 202, .parts = {}});
    }
  }
  // A session that was not opened by `initialize` ends after its only request.
  if (!session.kept && session.streams.empty()) close_session(session);
}

void Server::get(Connection &c, const RequestFeed &feed) {
  const RequestHead &head = feed.head();
  if (!head.accepts_events) {
    return respond_error(c, 406, error_code,
                         "Not Acceptable: the client must accept text/event-stream");
  }
  if (!head.has(Field::session)) {
    return respond_error(c, 400, error_code, "Bad Request: Mcp-Session-Id is missing");
  }
  Session *session = named_session(c, feed);
  if (session == nullptr || !revision_fits(c, feed, *session)) return;
  if (!head.has(Field::last_event_id)) return open_general(c, *session, session->general_written);
  EventId id;
  if (!parse_event_id(feed.text(Field::last_event_id), id)) {
    return respond_error(c, 400, error_code, "Bad Request: unknown Last-Event-ID");
  }
  if (id.stream == 0) return open_general(c, *session, id.sequence);
  resume(c, *session, id.stream, id.sequence);
}

// Opens the session's general stream, the event stream of a GET. If one is already open, it is
// closed: the client is assumed to have lost it, even if the server has not detected this yet.
void Server::open_general(Connection &c, Session &session, std::uint32_t after) {
  if (Connection *before = std::exchange(session.general, nullptr)) {
    before->attached = {};
    end_events(*before);
  }
  if (after > session.general_sequence)
    after = 0;  // from an earlier process, so all stored events are new
  const Event prime{.stream = 0, .sequence = after};
  c.attached = {Attachment::Role::general, &session, 0};
  session.general = &c;
  begin_events(c, {}, c.reply.primed ? &prime : nullptr);
  replay(c, session, 0, after);
  session.general_written = session.general_sequence;
}

// Resumes the stream of a POST whose connection broke.
void Server::resume(Connection &c, Session &session, std::uint64_t number, std::uint32_t after) {
  Stream *stream = session.find(number);
  const bool open = stream != nullptr && stream->events;
  if (!open && (stream != nullptr || !session.ring.knows(number))) {
    return respond_error(c, 400, error_code,
                         "Bad Request: events after this Last-Event-ID are no longer available");
  }
  begin_events(c, {}, nullptr);
  replay(c, session, number, after);
  if (!open) return end_events(c);
  if (Connection *before = std::exchange(stream->connection, &c)) {
    before->attached = {};
    end_events(*before);
  }
  c.attached = {Attachment::Role::post, &session, number};
}

void Server::replay(Connection &c, Session &session, std::uint64_t number, std::uint32_t after) {
  session.ring.replay(number, after, [&](EventRing::Entry &entry) {
    const bh_str part = bh::str(entry.data);
    const Event event{
        .has_id = true, .stream = number, .sequence = entry.sequence, .parts = {&part, 1}};
    if (send_event(c, event) && !entry.written) {
      entry.written = true;
      entry.at_ns = host_.now_ns();
    }
  });
}

void Server::remove(Connection &c, const RequestFeed &feed) {
  if (!feed.head().has(Field::session)) {
    return respond_error(c, 400, error_code, "Bad Request: Mcp-Session-Id is missing");
  }
  Session *session = named_session(c, feed);
  if (session == nullptr || !revision_fits(c, feed, *session)) return;
  close_session(*session);
  respond(c, {.status = 204, .parts = {}});
}

}  // namespace transport_http
