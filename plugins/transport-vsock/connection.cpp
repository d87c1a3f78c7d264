#include "transport-vsock/connection.hpp"

#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/messages.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "mcp-frame/process_name.hpp"
#include "transport-vsock/peek.hpp"
#include "transport-vsock/sniff.hpp"

namespace transport_vsock {
namespace {

using bh::ns_per_ms;

// Returns the maximum total length of a frame.
std::size_t frame_limit(const ConnectionOwner &owner) {
  if (owner.config.local_token.empty()) return mcp_frame::max_total;
  constexpr std::uint64_t head = mcp_frame::header_bytes + mcp_frame::max_name;
  return std::min<std::uint64_t>(owner.transport->limits->message_bytes, UINT32_MAX - head) + head;
}

}  // namespace

Connection::Connection(ConnectionOwner &owner, int fd, std::string peer)
    : owner_(owner),
      fd_(fd),
      peer_(std::move(peer)),
      since_ns_(owner.host.now_ns()),
      max_total_(frame_limit(owner)),
      frames_(max_total_),
      lines_(std::min<std::uint64_t>(max_line, owner.transport->limits->message_bytes)),
      bound_(owner.config.local_token.empty()
                 ? std::min<std::uint64_t>(max_waiting, owner.transport->limits->write_queue_bytes)
                 : owner.transport->limits->write_queue_bytes),
      pause_at_(std::min(pause_bytes, bound_ / 2)),
      writer_(bound_) {}

Connection::~Connection() {
  owner_.unsent -= counted_;
  if (fd_ < 0) return;
  owner_.host.unwatch(watch_);
  ::close(fd_);
}

bool Connection::start() {
  owner_.want_checks();
  return owner_.host.watch(fd_, events_, bh::fd_callback<&Connection::on_event>(this), &watch_) ==
         BH_OK;
}

int Connection::release() noexcept {
  owner_.host.unwatch(watch_);
  doom(0);
  return std::exchange(fd_, -1);
}

void Connection::doom(bh_metric why) noexcept {
  if (std::exchange(doomed_, true)) return;
  owner_.counters.add(why);
  owner_.unsent -= std::exchange(counted_, 0);
  if (watch_ != 0) owner_.host.modify(watch_, 0);
  owner_.on_doomed(*this);
}

void Connection::session_ended() noexcept {
  session_ = 0;
  if (writer_.waiting() > 0) writer_.flush(fd_);
  doom(owner_.counters.host_ended);
}

// ---- events ------------------------------------------------------------------------------------

void Connection::on_event(std::uint32_t events) noexcept {
  if (!doomed_) {
    in_event_ = true;
    if ((events & BH_FD_READ) != 0) {
      on_readable();
    } else if ((events & (BH_FD_ERROR | BH_FD_WRITE)) == BH_FD_ERROR) {
      doom(owner_.counters.error);
    }
    in_event_ = false;
    if (!doomed_) {
      flush();
    } else if (fd_ >= 0) {
      writer_.flush(fd_);  // sends responses that were queued before the error
    }
  }
  owner_.on_event_end();
}

void Connection::on_readable() {
  std::span<char> room = mode_ == Mode::frames ? frames_.room() : std::span<char>();
  const bool direct = !room.empty();
  if (!direct) room = {owner_.scratch.data.get(), stdio_lines::Scratch::size};
  const ssize_t n = ::recv(fd_, room.data(), room.size(), 0);
  if (n < 0) {
    if (errno != EAGAIN && errno != EINTR) doom(owner_.counters.error);
    return;
  }
  if (n == 0) return input_ended();
  const auto got = static_cast<std::size_t>(n);
  if (!direct) return received({room.data(), got});
  frames_.filled(got);
  consume({});
}

void Connection::received(std::string_view bytes) {
  switch (mode_) {
    case Mode::frames:
    case Mode::lines:
      return consume(bytes);
    case Mode::sniffing:
      if (std::exchange(introduced_, false)) {
        since_ns_ = owner_.host.now_ns();
        owner_.want_checks();
      }
      if (undecided_.empty()) return sniff_all(bytes);
      undecided_ += bytes;
      const std::string all = std::move(undecided_);
      undecided_.clear();
      return sniff_all(all);
  }
}

// Called when the guest will send no more input. In-flight requests are still answered.
void Connection::input_ended() {
  input_ended_ = true;
  if (mode_ == Mode::lines) lines_.finish(*this);
  if (parked_.empty()) report_input_ended();
  update_events();
}

void Connection::report_input_ended() {
  if (session_ == 0) return;
  owner_.transport->session_close(owner_.host.ctx(), session_, BH_SESSION_INPUT_ENDED);
}

// Reading pauses while too much output is queued, and stops at the end of the input.
void Connection::update_events() {
  const bool reads = !input_ended_ && !paused_ && writer_.waiting() < pause_at_;
  const std::uint32_t events =
      (reads ? std::uint32_t{BH_FD_READ} : 0u) | (blocked_ ? std::uint32_t{BH_FD_WRITE} : 0u);
  if (events == events_ || doomed_) return;
  events_ = events;
  owner_.host.modify(watch_, events);
}

// ---- out ---------------------------------------------------------------------------------------

// Calls add() to queue output. If the queue is full, flushes it and calls add() again. All output
// of one event or one event loop iteration is sent together.
template <class Add>
bool Connection::queue(Add add) {
  bool taken = add();
  if (!taken && writer_.flush(fd_) != stdio_lines::Flush::broken) taken = add();
  if (!taken) {
    too_slow();
    return false;
  }
  count_unsent();
  if (!in_event_) owner_.on_unflushed(*this);
  return !doomed_;
}

void Connection::count_unsent() noexcept {
  if (doomed_) return;
  owner_.unsent += writer_.waiting() - std::exchange(counted_, writer_.waiting());
  if (owner_.unsent > max_unsent) owner_.on_too_much_unsent();
}

void Connection::flush() {
  if (writer_.waiting() > 0) after_flush(writer_.flush(fd_));
  deliver_parked();
  if (paused_ && !doomed_ && writer_.waiting() < pause_at_ && parked_bytes_ < max_parked) resume();
  if (input_ended_ && open_ == 0 && parked_.empty() && writer_.waiting() == 0) {
    doom(owner_.counters.eof);
  }
}

void Connection::after_flush(stdio_lines::Flush result) {
  if (result == stdio_lines::Flush::broken) return doom(owner_.counters.error);
  const bool blocked = result == stdio_lines::Flush::blocked;
  if (blocked && (!blocked_ || writer_.waiting() < waiting_before_)) {
    since_ns_ = owner_.host.now_ns();
    owner_.want_checks();
  }
  waiting_before_ = writer_.waiting();
  blocked_ = blocked;
  count_unsent();
  update_events();
}

bool Connection::check(std::uint64_t now_ns) {
  if (doomed_) return false;
  const bool sniffing = mode_ == Mode::sniffing;
  if (sniffing ? introduced_ : !blocked_) return false;
  const std::uint64_t limit_ms =
      sniffing ? owner_.config.sniff_timeout_ms : owner_.config.write_timeout_ms;
  if (now_ns - since_ns_ < limit_ms * ns_per_ms) return true;
  if (!sniffing && owner_.stalled.due(now_ns)) {
    owner_.host.log(BH_LOG_INFO, peer_ + " does not read its responses; the connection is closed" +
                                     owner_.stalled.suppressed());
  }
  doom(sniffing ? owner_.counters.sniff_timeout : owner_.counters.too_slow);
  return false;
}

// ---- in ----------------------------------------------------------------------------------------

bool Connection::is_local(std::string_view all, const Sniffed &sniffed) const {
  const std::string &token = owner_.config.local_token;
  return sniffed.kind == Sniffed::Kind::frames && all.size() > token.size() + 1 &&
         all.substr(1, token.size()) == token && all[token.size() + 1] == ':';
}

void Connection::sniff_all(std::string_view all) {
  const bool local = !owner_.config.local_token.empty();
  if (local) {
    // The connection must begin with NUL, the token and a colon.
    const std::string start = std::string(1, '\0') + owner_.config.local_token + ':';
    const std::size_t n = std::min(all.size(), start.size());
    if (all.substr(0, n) != std::string_view(start).substr(0, n)) {
      return doom(owner_.counters.refused);
    }
  }
  const Sniffed sniffed = local ? sniff(all, {&owner_.config.local_token, 1}, max_total_)
                                : sniff(all, owner_.config.metadata_prefixes, max_total_);
  if (local && sniffed.kind != Sniffed::Kind::more && !is_local(all, sniffed)) {
    return doom(owner_.counters.refused);
  }
  const std::string_view rest = all.substr(sniffed.start);
  switch (sniffed.kind) {
    case Sniffed::Kind::more:
      undecided_ = all;
      introduced_ = sniffed.start > 0 && rest.empty();
      return;
    case Sniffed::Kind::frames:
      mode_ = Mode::frames;
      owner_.counters.add(owner_.counters.frames);
      return consume(rest);
    case Sniffed::Kind::lines:
      mode_ = Mode::lines;
      owner_.counters.add(owner_.counters.lines);
      if (name_process(sniffed.name)) consume(rest);
      return;
    case Sniffed::Kind::other:
      if (!owner_.config.handoff.empty()) return owner_.on_other(*this, rest);
      [[fallthrough]];
    case Sniffed::Kind::refused:
      return doom(owner_.counters.not_mcp);
  }
}

void Connection::consume(std::string_view in) {
  mode_ == Mode::frames ? consume_frames(in) : consume_lines(in);
}

// Returns true if the queued output or the waiting requests have reached their limit. If so, pauses
// reading and stores `rest`, the input that has already been received.
bool Connection::pauses(std::string_view rest) {
  if (writer_.waiting() >= pause_at_) after_flush(writer_.flush(fd_));
  if (doomed_ || (writer_.waiting() < pause_at_ && parked_bytes_ < max_parked)) return false;
  held_ = std::string(rest);
  paused_ = true;
  update_events();
  return true;
}

void Connection::resume() {
  paused_ = false;
  const std::string rest = std::exchange(held_, {});
  consume(rest);
  update_events();
}

void Connection::consume_lines(std::string_view in) {
  while (!in.empty() && !doomed_ && !pauses(in)) {
    const std::size_t end = in.find('\n');
    const std::string_view line = end == in.npos ? in : in.substr(0, end + 1);
    lines_.feed(line, owner_.scratch, *this);
    in.remove_prefix(line.size());
  }
}

void Connection::consume_frames(std::string_view in) {
  mcp_frame::Frame frame;
  while (!doomed_ && !pauses(in)) {
    switch (frames_.next(&in, &frame)) {
      case mcp_frame::FrameReader::Step::more:
        return;
      case mcp_frame::FrameReader::Step::frame:
        on_frame(frame);
        break;
      case mcp_frame::FrameReader::Step::bad_frame:
        on_bad_frame(frame.stream, frames_.fault());
        break;
      case mcp_frame::FrameReader::Step::lost:
        return doom(owner_.counters.framing);
    }
  }
}

void Connection::on_frame(const mcp_frame::Frame &frame) {
  if (!name_process(frame.name)) return;
  if (frame.notification) {
    if (!handle_unanswered(frame.payload) && open_session())
      deliver_in_turn(0, frame.payload, false);
    return;
  }
  if (frame.stream <= last_stream_) return doom(owner_.counters.stream_order);
  last_stream_ = frame.stream;
  if (!open_session()) return;
  deliver_in_turn(frame.stream | std::uint64_t{name_} << 32, frame.payload, true);
}

void Connection::on_bad_frame(std::uint32_t stream, mcp_frame::Fault fault) {
  owner_.counters.add(owner_.counters.bad_frames);
  if (stream == 0) return;
  const bh_str parts[] = {
      bh::str(R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"invalid MCP frame: )"),
      bh::str(mcp_frame::text(fault)), bh::str(R"("}})")};
  send_frame(stream, {}, parts);
}

bool Connection::on_line(std::string_view line) {
  // The guest may offer to support server-initiated messages only before the session is opened.
  // Later lines are not checked for such an offer, because parsing them is slow.
  const bool may_offer = session_ == 0 && line.find(duplex_method) != line.npos;
  if ((!may_offer || !handle_unanswered(line)) && open_session()) {
    deliver_in_turn(0, line, !waits() || expects_response(line));
  }
  return !doomed_;
}

// The error has no ID, because the ID may be in the skipped part of the line.
bool Connection::on_too_long(std::string_view) {
  const std::string_view text =
      R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"message too large"}})";
  const bh_str part = bh::str(text);
  return queue([&] { return writer_.add({&part, 1}); });
}

// ---- the session -------------------------------------------------------------------------------

// Handles a message that must not reach the host: an offer of server-initiated messages, an
// unexpected response, or a request or malformed message in a notification frame. Returns false if
// the host must receive the message.
bool Connection::handle_unanswered(std::string_view message) {
  switch (peek(message)) {
    case Envelope::notification:
      return false;
    case Envelope::response:
      return !duplex_;
    case Envelope::duplex:
      // The session's capabilities are declared when it is opened, so a later offer is ignored.
      duplex_ = duplex_ || session_ == 0;
      return true;
    case Envelope::request:
      if (mode_ == Mode::lines) return false;
      [[fallthrough]];
    case Envelope::unreadable:
      if (mode_ == Mode::lines) return false;
      owner_.counters.add(owner_.counters.mixed_up);
      return true;
  }
  return true;
}

// Sets the name of the process that sends the following messages. If there have been too many
// different names, closes the connection and returns false.
bool Connection::name_process(std::string_view name) {
  if (!names_.empty() && names_[name_].raw == name) return true;
  const auto at =
      std::find_if(names_.begin(), names_.end(), [&](const Name &one) { return one.raw == name; });
  const auto known = static_cast<std::size_t>(at - names_.begin());
  if (at == names_.end()) {
    if (names_.size() == max_names) {
      doom(owner_.counters.error);
      return false;
    }
    std::string clean = mcp_frame::clean_process_name(name);
    if (clean.empty()) clean = "unknown";
    names_.push_back({std::string(name), std::move(clean)});
  }
  use_name(known);
  return true;
}

void Connection::use_name(std::size_t known) {
  if (name_ == known) return;
  name_ = known;
  if (session_ == 0) return;
  owner_.transport->set_process_name(owner_.host.ctx(), session_, bh::str(names_[known].clean));
}

bool Connection::open_session() {
  if (session_ != 0 || doomed_) return !doomed_;
  bh_peer peer{};
  peer.size = sizeof peer;
  if (!duplex_) peer.flags |= BH_PEER_ANSWERS_ONLY;
  if (owner_.config.local_token.empty()) {
    peer.flags |= BH_PEER_HANDSHAKE_OPTIONAL;
    peer.transport = bh::str("vsock");
    peer.address = bh::str(peer_);
  } else {
    peer.transport = bh::str("stdio");
  }
  peer.process_name = bh::str(names_[name_].clean);
  peer.max_message_bytes = max_total_ - mcp_frame::header_bytes - mcp_frame::max_name;
  bh_error error = bh::make_error();
  if (owner_.transport->session_open(owner_.host.ctx(), &peer, &session_, &error) == BH_OK) {
    owner_.on_session(*this, session_);
    return true;
  }
  session_ = 0;
  if (owner_.no_session.due(owner_.host.now_ns())) {
    owner_.host.log(BH_LOG_WARN, "cannot open a session for " + peer_ + ": " +
                                     std::string(bh::text(error)) + owner_.no_session.suppressed());
  }
  doom(owner_.counters.error);
  return false;
}

bool Connection::full() const noexcept {
  const bh_limits *limits = owner_.transport->limits;
  return BH_HAS(bh_limits, limits, in_flight_per_session) && open_ >= limits->in_flight_per_session;
}

bool Connection::waits() const noexcept {
  return full() || !parked_.empty();
}

// The host limits how many requests of a session are in flight. Additional requests are queued
// here. If the queue reaches its limit, reading pauses. Notifications and responses, including all
// messages in notification frames, are delivered before queued requests, because an in-flight
// request may depend on a response to a server-initiated request.
void Connection::deliver_in_turn(std::uint64_t stream, std::string_view message, bool awaited) {
  if (awaited && waits()) return park(stream, message, true);
  deliver(stream, message, awaited);
  // A cancellation may refer to a queued request, so it is delivered once more after that request.
  if (parked_.empty() || doomed_ || awaited) return;
  if (message.find("notifications/cancelled") != message.npos) park(stream, message, false);
}

void Connection::park(std::uint64_t stream, std::string_view message, bool awaited) {
  parked_bytes_ += message.size();
  parked_.push_back({stream, std::string(message), awaited});
}

void Connection::deliver_parked() {
  if (parked_.empty()) return;
  while (!parked_.empty() && !doomed_ && !(parked_.front().awaited && full())) {
    const Parked next = std::move(parked_.front());
    parked_.pop_front();
    parked_bytes_ -= next.message.size();
    if (mode_ == Mode::frames && next.awaited) use_name(next.stream >> 32);
    deliver(next.stream, next.message, next.awaited);
  }
  if (input_ended_ && parked_.empty() && !doomed_) report_input_ended();
}

// If `awaited` is true, the guest expects a response on `stream`. The response may be an empty
// frame.
void Connection::deliver(std::uint64_t stream, std::string_view message, bool awaited) {
  bh_delivery delivery{};
  delivery.size = sizeof delivery;
  // In the line protocol, the host may also send an error for a message without a response, and
  // send() counts each response that it receives.
  const bool counts = awaited || mode_ != Mode::frames;
  if (counts) ++open_;
  const bh_incoming incoming = bh::incoming(session_, stream, message);
  const bh_status status = owner_.transport->deliver(owner_.host.ctx(), &incoming, &delivery);
  if (status != BH_OK) return doom(owner_.counters.host_ended);
  if (!counts || delivery.kind != BH_DELIVERED_NOTHING) return;
  --open_;
  if (mode_ == Mode::frames && !doomed_) {
    send_frame(static_cast<std::uint32_t>(stream), names_[stream >> 32].raw, {});
  }
}

// ---- from the host -----------------------------------------------------------------------------

bh_status Connection::send(const bh_outgoing &message) {
  if (doomed_) return BH_STALE;
  const bool answer = message.kind == BH_OUT_ANSWER;
  bh_status status = BH_OK;
  if (mode_ == Mode::frames) {
    status = send_as_frame(message);
  } else {
    if (answer && open_ > 0) --open_;
    if (message.part_count > 0 && (answer || duplex_)) {
      const bool taken = queue([&] { return writer_.add({message.parts, message.part_count}); });
      status = taken ? BH_OK : BH_E_LIMIT;
    }
  }
  // If the guest has closed its side, flush() closes the connection after the last response.
  if (input_ended_ && open_ == 0 && !in_event_) owner_.on_unflushed(*this);
  return status;
}

bh_status Connection::send_as_frame(const bh_outgoing &message) {
  const std::span<const bh_str> parts(message.parts, message.part_count);
  const auto stream = static_cast<std::uint32_t>(message.stream);
  const std::string_view name = names_[message.stream >> 32].raw;
  const std::size_t most = max_total_ - mcp_frame::header_bytes - name.size();
  const bool too_large = stdio_lines::total_size(parts) > most;
  if (message.kind != BH_OUT_ANSWER) {
    if (!duplex_) return BH_OK;
    if (too_large) return BH_E_LIMIT;
    return send_frame(0, name, parts) ? BH_OK : BH_E_LIMIT;
  }
  if (stream == 0) return BH_OK;  // the guest expects no response on this stream
  if (open_ > 0) --open_;
  if (too_large) return send_too_large(stream, name, parts);
  return send_frame(stream, name, parts) ? BH_OK : BH_E_LIMIT;
}

// Responds with an error instead, because the protocol does not allow a message to be split into
// several frames.
bh_status Connection::send_too_large(std::uint32_t stream, std::string_view name,
                                     std::span<const bh_str> parts) {
  const std::string id = id_of(parts);
  const std::string text =
      R"({"jsonrpc":"2.0",)" + (id.empty() ? "" : "\"id\":" + id + ",") +
      R"("error":{"code":-32603,"message":"the response exceeds the maximum frame size of )" +
      std::to_string(max_total_ >> 20) + R"( MiB"}})";
  const bh_str part = bh::str(text);
  return send_frame(stream, name, {&part, 1}) ? BH_OK : BH_E_LIMIT;
}

// Stream 0 is for server-initiated messages.
bool Connection::send_frame(std::uint32_t stream, std::string_view name,
                            std::span<const bh_str> parts) {
  char head[mcp_frame::max_head];
  std::size_t size = 0;
  const mcp_frame::Frame frame{stream, stream == 0, name, {}};
  const auto fault =
      mcp_frame::encode_head(frame, stdio_lines::total_size(parts), head, &size, max_total_);
  if (fault != mcp_frame::Fault::none) return false;
  return queue([&] { return writer_.add_raw({head, size}, parts); });
}

}  // namespace transport_vsock
