#include "connector-vsock/lane.hpp"

#include <bulkhead/cpp/messages.hpp>
#include <bulkhead/cpp/text.hpp>

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "connector-vsock/dial.hpp"
#include "mcp-frame/metadata_line.hpp"

namespace connector_vsock {
namespace {

using mcp_frame::Fault;
using mcp_frame::Frame;
using mcp_frame::FrameReader;

constexpr std::size_t kept_queue = 64u << 10;
constexpr std::string_view duplex_offer =
    R"({"jsonrpc":"2.0","method":"notifications/bulkhead/duplex","params":{"version":1}})";

std::size_t total_size(const bh_lane_message &message) noexcept {
  std::size_t total = 0;
  for (std::uint32_t i = 0; i < message.part_count; ++i) total += message.parts[i].n;
  return total;
}

std::string error_text(const char *what, int error) {
  return std::string(what) + " (" + bh::error_name(error) + ")";
}

}  // namespace

Lane::Lane(Shared &shared, bh_lane handle, Definition definition)
    : shared_(shared),
      handle_(handle),
      definition_(std::move(definition)),
      reader_(definition_.max_total()) {}

Lane::~Lane() {
  release();
}

void Lane::release() {
  shared_.host.timer_cancel(timer_);
  shared_.host.unwatch(watch_);
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

// ---- opening -----------------------------------------------------------------------------------

bh_status Lane::open(std::uint64_t connect_timeout_ms, bh_error *error) {
  fd_ = dial(definition_);
  if (fd_ < 0) return bh::fail(error, BH_E_UNAVAILABLE, explain(definition_, errno));
  const bh_status watched = shared_.host.watch(
      fd_, BH_FD_READ | BH_FD_WRITE, bh::contained_fd_callback<&Lane::on_event>(this), &watch_);
  if (watched != BH_OK) return bh::fail(error, BH_E_LIMIT, "the gateway cannot watch the socket");
  timer_ = shared_.host.timer_start(connect_timeout_ms,
                                    bh::contained_callback<&Lane::on_connect_timeout>(this));
  introduce();
  return BH_OK;
}

void Lane::introduce() {
  queue_.append(mcp_frame::metadata_line(definition_.meta_prefix, definition_.process_name));
  if (!definition_.duplex) return;
  const bh_str offer = bh::str(duplex_offer);
  queue_frame(0, true, &offer, 1, offer.n, nullptr);
}

void Lane::on_connect_timeout() {
  timer_ = 0;
  report_down(BH_E_UNAVAILABLE, "the connection timed out");
}

void Lane::on_event() {
  if (state_ == State::connecting) return on_connected();
  if (blocked_) write_queue();
  if (reads()) on_readable();
}

void Lane::on_connected() {
  if (const int error = connect_error(fd_); error != 0) {
    return report_down(BH_E_UNAVAILABLE, explain(definition_, error));
  }
  if (definition_.kind != AddressKind::hybrid) return now_up();
  state_ = State::dialogue;
  update_watch();
  // The send buffer of a new socket has room for these few bytes, so send() writes all of them.
  const std::string request = hybrid_request(definition_);
  if (::send(fd_, request.data(), request.size(), MSG_NOSIGNAL) < 0) {
    report_down(BH_E_UNAVAILABLE, error_text("write failed", errno));
  }
}

void Lane::on_dialogue(std::string_view in) {
  answer_ += in.substr(0, max_hybrid_answer - answer_.size());
  std::size_t size = 0;
  switch (hybrid_answer(answer_, &size)) {
    case Hybrid::more:
      return;
    case Hybrid::refused:
      return report_down(BH_E_UNAVAILABLE, "the hypervisor's socket did not respond with OK");
    case Hybrid::accepted:
      break;
  }
  // The endpoint sends nothing before it receives a message, so no data follows the response.
  now_up();
}

void Lane::now_up() {
  state_ = State::up;
  shared_.host.timer_cancel(timer_);
  update_watch();
  shared_.flush_later(*this);
  if (shared_.wire != nullptr) shared_.wire->lane_connected(shared_.host.ctx(), handle_);
}

// ---- to the endpoint ---------------------------------------------------------------------------

bh_status Lane::send(const bh_lane_message &message, bh_error *error) {
  if (state_ == State::down || closing_ || finishing_ || !broken_.empty()) {
    return bh::fail(error, BH_E_UNAVAILABLE, "the connection is closing");
  }
  const bool request = message.kind == BH_LANE_REQUEST;
  if (request && next_stream_ == 0) {
    return bh::fail(error, BH_E_SESSION_LOST, "the connection's stream numbers are exhausted");
  }
  const std::size_t payload = total_size(message);
  // A message that is too large for any frame is rejected below with its own error, even if the
  // queue is full.
  const std::size_t most =
      definition_.max_total() - mcp_frame::header_bytes - definition_.process_name.size();
  if (payload <= most && queue_.size() - written_ + payload + mcp_frame::max_head >
                             shared_.up->limits->write_queue_bytes) {
    return bh::fail(error, BH_E_LIMIT, "write failed: the endpoint reads too slowly");
  }
  const std::uint32_t stream = request ? next_stream_ : 0;
  if (!queue_frame(stream, !request, message.parts, message.part_count, payload, error)) {
    return BH_E_INVALID;
  }
  if (request) {
    ++next_stream_;  // becomes 0 after the last number
    exchanges_.emplace(stream, message.exchange);
  }
  if (state_ == State::up && !blocked_) shared_.flush_later(*this);
  return BH_OK;
}

bool Lane::queue_frame(std::uint32_t stream, bool notification, const bh_str *parts,
                       std::uint32_t part_count, std::size_t payload, bh_error *error) {
  Frame frame;
  frame.stream = stream;
  frame.notification = notification;
  frame.name = definition_.process_name;
  char head[mcp_frame::max_head];
  std::size_t head_size = 0;
  if (const Fault fault =
          mcp_frame::encode_head(frame, payload, head, &head_size, definition_.max_total());
      fault != Fault::none) {
    bh::fail(error, BH_E_INVALID, "frame encode failed: " + std::string(mcp_frame::text(fault)));
    return false;
  }
  if (!queue_.reserve(head_size + payload)) {
    bh::fail(error, BH_E_INVALID, "frame encode failed: out of memory");
    return false;
  }
  queue_.append({head, head_size});
  for (std::uint32_t i = 0; i < part_count; ++i) queue_.append(bh::view(parts[i]));
  return true;
}

void Lane::abandon(std::uint64_t exchange) noexcept {
  std::erase_if(exchanges_, [&](const auto &entry) { return entry.second == exchange; });
}

void Lane::flush() {
  if (state_ != State::up || closing_) return;
  if (!broken_.empty()) {
    if (!held_) on_readable();
  } else if (!blocked_) {
    write_queue();
  }
}

void Lane::write_queue() {
  while (written_ < queue_.size()) {
    const ssize_t n = ::send(fd_, queue_.data() + written_, queue_.size() - written_, MSG_NOSIGNAL);
    if (n >= 0) {
      written_ += static_cast<std::size_t>(n);
      continue;
    }
    if (errno == EINTR) continue;
    if (errno == EAGAIN) {
      if (written_ > queue_.size() / 2) queue_.drop_front(std::exchange(written_, 0));
      return set_blocked(true);
    }
    return write_failed(error_text("write failed", errno));
  }
  written_ = 0;
  queue_.clear();
  if (queue_.capacity() > kept_queue) queue_.release();
  set_blocked(false);
  if (finishing_ && !std::exchange(half_closed_, true)) ::shutdown(fd_, SHUT_WR);
}

// Responses that arrived before the write error are still delivered. on_readable() then reports
// that the connection is lost.
void Lane::write_failed(const std::string &why) {
  broken_ = why;
  set_blocked(false);
  if (reads()) on_readable();
}

void Lane::set_blocked(bool blocked) {
  if (std::exchange(blocked_, blocked) == blocked) return;
  update_watch();
  const bh_host_wire *const wire = shared_.wire;
  if (wire == nullptr || !BH_HAS(bh_host_wire, wire, lane_full)) return;
  wire->lane_full(shared_.host.ctx(), handle_, blocked ? 1 : 0);
}

void Lane::hold(bool hold) {
  if (std::exchange(held_, hold) == hold || state_ != State::up || closing_) return;
  update_watch();
  if (!hold && !broken_.empty()) shared_.flush_later(*this);
}

// If no events are needed, the descriptor is not watched. Otherwise, a closed connection would be
// reported in every event loop iteration.
void Lane::update_watch() {
  const std::uint32_t events =
      (reads() ? std::uint32_t{BH_FD_READ} : 0u) | (blocked_ ? std::uint32_t{BH_FD_WRITE} : 0u);
  if (events == 0) return shared_.host.unwatch(watch_);
  if (watch_ != 0) return shared_.host.modify(watch_, events);
  if (shared_.host.watch(fd_, events, bh::contained_fd_callback<&Lane::on_event>(this), &watch_) ==
      BH_OK)
    return;
  broken_ = "the gateway cannot watch the socket";
  shared_.flush_later(*this);
}

void Lane::finish() {
  if (std::exchange(finishing_, true) || state_ == State::down) return;
  shared_.flush_later(*this);
}

// ---- from the endpoint -------------------------------------------------------------------------

void Lane::on_readable() {
  for (std::size_t used = 0; used < read_budget && !closing_ && reads();) {
    const std::span<char> direct = reader_.room();
    char *const to = direct.empty() ? shared_.scratch.get() : direct.data();
    const std::size_t room = direct.empty() ? Shared::scratch_size : direct.size();
    const ssize_t n = ::recv(fd_, to, room, 0);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) {
      if (!broken_.empty()) report_down(BH_E_IO, broken_);
      return;
    }
    if (n < 0) return report_down(BH_E_IO, error_text("connection closed", errno));
    if (n == 0) {
      if (state_ == State::dialogue) {
        return report_down(BH_E_UNAVAILABLE,
                           "the hypervisor's socket closed the connection: no process "
                           "is listening on this port");
      }
      const bool cut = reader_.held() > 0;
      return report_down(BH_E_IO,
                         cut ? "connection closed in the middle of a frame" : "connection closed");
    }
    const auto got = static_cast<std::size_t>(n);
    if (!direct.empty()) reader_.filled(got);
    on_bytes(direct.empty() ? std::string_view(to, got) : std::string_view());
    if (state_ == State::down || (got < room && broken_.empty())) return;
    used += got;
  }
  if (!broken_.empty() && !closing_) shared_.flush_later(*this);
}

void Lane::on_bytes(std::string_view in) {
  if (state_ == State::dialogue) return on_dialogue(in);
  Frame frame;
  while (state_ != State::down && !closing_) {
    switch (reader_.next(&in, &frame)) {
      case FrameReader::Step::more:
        return;
      case FrameReader::Step::frame:
        on_frame(frame);
        break;
      case FrameReader::Step::bad_frame:
        bad_frame(frame.stream);
        break;
      case FrameReader::Step::lost:
        return report_down(BH_E_PROTOCOL,
                           "connection closed: the endpoint sent an invalid frame: " +
                               std::string(mcp_frame::text(reader_.fault())));
    }
  }
}

void Lane::on_frame(const Frame &frame) {
  const bh_str payload = bh::str(frame.payload);
  if (frame.notification) {
    if (payload.n > 0) shared_.up->message(shared_.host.ctx(), handle_, 0, payload);
    return;
  }
  const auto at = exchanges_.find(frame.stream);
  if (at == exchanges_.end()) return;  // an abandoned or unknown exchange
  const std::uint64_t exchange = at->second;
  exchanges_.erase(at);
  if (payload.n > 0) return shared_.up->message(shared_.host.ctx(), handle_, exchange, payload);
  const bh_error nothing = bh::make_error(BH_E_CANCELLED, "the endpoint sent an empty response");
  const bh_lane_failure failure = bh::lane_failure(nothing);
  shared_.up->exchange_failed(shared_.host.ctx(), handle_, exchange, &failure);
}

void Lane::bad_frame(std::uint32_t stream) {
  const std::string why = std::string(mcp_frame::text(reader_.fault()));
  if (!std::exchange(bad_frame_logged_, true)) {
    shared_.host.log(BH_LOG_WARN, definition_.address() + " sent an invalid frame: " + why +
                                      " (logged once per connection)");
  }
  const auto at = exchanges_.find(stream);
  if (at == exchanges_.end()) return;
  const std::uint64_t exchange = at->second;
  exchanges_.erase(at);
  const bh_error error = bh::make_error(BH_E_PROTOCOL, "invalid response frame: " + why);
  const bh_lane_failure failure = bh::lane_failure(error);
  shared_.up->exchange_failed(shared_.host.ctx(), handle_, exchange, &failure);
}

// ---- shutdown ----------------------------------------------------------------------------------

void Lane::report_down(bh_status code, const std::string &text) {
  if (closing_ || std::exchange(state_, State::down) == State::down) return;
  release();
  const bh_error error = bh::make_error(code, text);
  const bh_lane_failure failure = bh::lane_failure(error);
  shared_.up->lane_down(shared_.host.ctx(), handle_, &failure);
}

void Lane::close() {
  if (std::exchange(closing_, true)) return;
  release();
  shared_.finished(*this);
}

}  // namespace connector_vsock
