#include "transport-stdio/transport_stdio.hpp"

#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/messages.hpp>
#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <poll.h>
#include <rapidjson/document.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <string>
#include <utility>

#include "transport-stdio/parent_name.hpp"

namespace transport_stdio {
namespace {

using stdio_lines::Flush;
using stdio_lines::ReadEnd;

constexpr int large_pipe = 1 << 20;

bool read_fd(const rapidjson::Value &root, const char *name, int *out) {
  const auto it = root.FindMember(name);
  if (it == root.MemberEnd()) return true;
  if (!it->value.IsString()) return false;
  const char *const begin = it->value.GetString();
  const char *const end = begin + it->value.GetStringLength();
  const auto [stop, problem] = std::from_chars(begin, end, *out);
  return problem == std::errc() && stop == end && *out >= 0;
}

const bh_flow flow_table{sizeof(bh_flow), 0, [](void *s, bh_session session, std::uint32_t hold) {
                           bh::guarded(nullptr, [&] {
                             bh::self<TransportStdio>(s).hold_input(session, hold != 0);
                             return BH_OK;
                           });
                         }};

}  // namespace

TransportStdio::TransportStdio(const bh_host *host)
    : host_(host),
      up_(host_.ext<bh_host_transport>(BH_EXT_HOST_TRANSPORT)),
      flow_(host_.ext<bh_host_flow>(BH_EXT_HOST_FLOW)),
      carried_(host_.ctx(), host_.ext<bh_host_resume>(BH_EXT_HOST_RESUME)) {}

const void *TransportStdio::get_ext(const char *id) noexcept {
  if (bh::is(id, BH_EXT_TRANSPORT)) return bh::transport_table<TransportStdio>();
  return bh::is(id, BH_EXT_FLOW) ? &flow_table : nullptr;
}

bh_status TransportStdio::configure(bh_str json, bh_error *error) {
  if (up_ == nullptr || up_->limits == nullptr || !host_.has_reactor()) {
    return bh::fail(error, BH_E_UNSUPPORTED,
                    "transport-stdio requires a host with " BH_EXT_HOST_TRANSPORT
                    ", " BH_EXT_HOST_EXECUTOR " and " BH_EXT_HOST_FD);
  }
  // Numbers are kept as strings, so RapidJSON scans them but does not convert them.
  constexpr unsigned flags = rapidjson::kParseIterativeFlag |
                             rapidjson::kParseValidateEncodingFlag |
                             rapidjson::kParseNumbersAsStringsFlag;
  rapidjson::Document root;
  root.Parse<flags>(json.p, json.n);
  if (root.HasParseError() || !root.IsObject() || !read_fd(root, "in_fd", &in_) ||
      !read_fd(root, "out_fd", &out_)) {
    return bh::fail(error, BH_E_INVALID, "in_fd and out_fd must be descriptor numbers");
  }
  return BH_OK;
}

bh_status TransportStdio::start(bh_error *error) {
  for (const int fd : {in_, out_}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    return bh::fail(error, BH_E_INVALID, "descriptor " + std::to_string(fd) + " is not open");
  }
  if (in_ == out_) {  // a descriptor can have only one watch
    out_ = ::fcntl(in_, F_DUPFD_CLOEXEC, 3);
    own_out_ = out_ >= 0;
    if (!own_out_)
      return bh::fail(error, BH_E_IO, "cannot duplicate the descriptor: " + bh::error_name(errno));
  }
  scratch_ = std::make_unique<stdio_lines::Scratch>();
  reader_ = stdio_lines::LineReader(up_->limits->message_bytes);
  writer_ = stdio_lines::LineWriter(up_->limits->write_queue_bytes);
  return BH_OK;
}

bh_status TransportStdio::listen(bh_error *error) {
  const bh_status status = host_.post(bh::contained_callback<&TransportStdio::begin>(this));
  return status == BH_OK ? BH_OK : bh::fail(error, status, "the host's queue is full");
}

// ---- the session begins ------------------------------------------------------------------------

void TransportStdio::begin() {
  stdio_lines::block_pipe_signal();
  // Reads the flags of the two descriptors before changing them, because the descriptors may refer
  // to the same open file (a terminal, a socket).
  int in_before = ::fcntl(in_, F_GETFL), out_before = ::fcntl(out_, F_GETFL);
  open_session();
  carried_.flags(&in_before, &out_before);
  if (::fcntl(in_, F_SETFL, in_before | O_NONBLOCK) == 0) in_flags_ = in_before;
  if (::fcntl(out_, F_SETFL, out_before | O_NONBLOCK) == 0) out_flags_ = out_before;
  if (session_ == 0) return finish();
  input_open_ = true;
  restore_streams();
  // A watch without events reports only that the client has disconnected. It fails for regular
  // files, which never block.
  host_.watch(out_, 0, bh::contained_fd_callback<&TransportStdio::on_output_event>(this),
              &out_watch_);
  // The output must be set up first, because responses to this input are written to it.
  const std::string unread = carried_.dequeue_unread();
  if (!unread.empty()) reader_.feed(unread, *scratch_, *this);
  if (input_open_) watch_input();
}

void TransportStdio::watch_input() {
  const bh_status status = host_.watch(
      in_, BH_FD_READ, bh::contained_fd_callback<&TransportStdio::on_input>(this), &in_watch_);
  if (status != BH_OK && !plain_queued_) on_plain_input();
}

void TransportStdio::open_session() {
  const std::string name = parent_name();
  bh_peer peer{};
  peer.size = sizeof peer;
  peer.transport = bh::str("stdio");
  peer.process_name = bh::str(name);
  bh_error error = bh::make_error();
  bh_status status = carried_.open(peer, &session_, &error);
  if (status == BH_E_UNSUPPORTED) {
    status = up_->session_open(host_.ctx(), &peer, &session_, &error);
  }
  if (status == BH_OK) return;
  session_ = 0;
  host_.log(BH_LOG_ERROR, "cannot open a session for the client on standard input: " +
                              std::string(bh::text(error)));
}

// Restores the stream state that the previous process stored.
void TransportStdio::restore_streams() {
  if (carried_.restored()) {
    host_.log(BH_LOG_INFO, "resuming the session of the client on standard input");
  }
  if (carried_.input_was_cut()) reader_.skip_line();
  if (!carried_.output_was_cut()) return;
  writer_.add_raw("\n", {});
  carried_.queued(0, writer_.end());
  flush_later();
}

// ---- from the client ---------------------------------------------------------------------------

void TransportStdio::on_input() {
  const ReadEnd end = reader_.read(in_, *scratch_, *this, read_budget);
  if (end == ReadEnd::ended || end == ReadEnd::failed || end == ReadEnd::stopped) input_ended();
}

// A regular file or /dev/null cannot be watched and is always readable. It is read once per event
// loop iteration.
void TransportStdio::on_plain_input() {
  plain_queued_ = false;
  if (!input_open_ || held_) return;
  const ReadEnd end = reader_.read(in_, *scratch_, *this, 1);
  const bool over = end == ReadEnd::ended || end == ReadEnd::failed || end == ReadEnd::stopped;
  if (!over && held_) return;
  plain_queued_ =
      !over && host_.post(bh::contained_callback<&TransportStdio::on_plain_input>(this)) == BH_OK;
  if (!plain_queued_) input_ended();
}

// The input is not watched while it is held. Otherwise, the end of a pipe would be reported in
// every event loop iteration.
void TransportStdio::hold_input(bh_session session, bool hold) {
  if (session_ == 0 || session != session_ || !input_open_ || held_ == hold) return;
  held_ = hold;
  if (hold) {
    reader_.pause();
    return host_.unwatch(in_watch_);
  }
  // Resuming is deferred because the host is calling this function.
  if (!std::exchange(resume_queued_, true))
    host_.defer(bh::contained_callback<&TransportStdio::resume_input>(this));
}

void TransportStdio::resume_input() {
  resume_queued_ = false;
  if (held_ || !input_open_) return;
  if (!reader_.resume(*scratch_, *this)) return input_ended();
  if (!held_ && input_open_) watch_input();
}

bool TransportStdio::on_line(std::string_view line) {
  if (session_ == 0) return true;
  if (line.size() > stdio_lines::large_message && !std::exchange(pipes_grown_, true)) {
    ::fcntl(in_, F_SETPIPE_SZ, large_pipe);  // best effort
    ::fcntl(out_, F_SETPIPE_SZ, large_pipe);
  }
  bh_delivery delivery{};
  delivery.size = sizeof delivery;
  const bh_incoming message = bh::incoming(session_, carried_.next_stream(), line);
  up_->deliver(host_.ctx(), &message, &delivery);
  return true;
}

// The error has no ID, because the ID may be in the skipped part of the line.
bool TransportStdio::on_too_long(std::string_view) {
  const std::string text =
      R"({"jsonrpc":"2.0","error":{"code":-32600,"message":"message too large: more than )" +
      std::to_string(up_->limits->message_bytes) + " bytes (limits.message_bytes)\"}}";
  const bh_str part = bh::str(text);
  if (session_ == 0 || !writer_.add({&part, 1})) return true;
  carried_.queued(0, writer_.end());
  flush_later();
  return true;
}

void TransportStdio::input_ended() {
  if (!std::exchange(input_open_, false)) return;
  host_.unwatch(in_watch_);
  reader_.finish(*this);
  progress_ns_ = host_.now_ns();
  if (session_ != 0) up_->session_close(host_.ctx(), session_, BH_SESSION_INPUT_ENDED);
  finish();
}

// ---- to the client -----------------------------------------------------------------------------

bh_status TransportStdio::send(const bh_outgoing &message) {
  if (session_ == 0 || message.session != session_ || end_session_) return BH_STALE;
  if (message.part_count == 0) {  // the request ends without a response
    carried_.settled(message.stream);
    return BH_OK;
  }
  const std::span<const bh_str> parts(message.parts, message.part_count);
  const std::uint64_t answered = message.kind == BH_OUT_ANSWER ? message.stream : 0;
  bool taken = false;
  if (stdio_lines::total_size(parts) > stdio_lines::large_message && !blocked_) {
    carried_.writes();
    const Flush result = writer_.add_and_flush(out_, parts, &taken);
    if (taken) carried_.queued(answered, writer_.end());
    carried_.written(writer_.written());
    after_flush(result);
  } else {
    taken = writer_.add(parts);
    if (taken) carried_.queued(answered, writer_.end());
    if (taken && !blocked_) flush_later();
  }
  if (taken) return BH_OK;
  end_session_ = true;  // deferred, because the host is calling this function
  flush_later();
  return BH_E_LIMIT;
}

void TransportStdio::flush_later() {
  if (std::exchange(deferred_, true)) return;
  host_.defer(bh::contained_callback<&TransportStdio::turn_end>(this));
}

void TransportStdio::turn_end() {
  deferred_ = false;
  if (!end_session_ && !blocked_) after_flush(flush());
  if (end_session_) client_gone();
}

void TransportStdio::on_output_event() {
  const bool gone = !blocked_;  // without blocked output, only errors are reported
  if (!gone) after_flush(flush());
  if (gone || end_session_) client_gone();
}

Flush TransportStdio::flush() {
  if (writer_.waiting() != 0) carried_.writes();
  const Flush result = writer_.flush(out_);
  carried_.written(writer_.written());
  return result;
}

void TransportStdio::after_flush(Flush result) {
  if (result == Flush::broken) {
    end_session_ = true;
    return flush_later();
  }
  const bool blocked = result == Flush::blocked;
  if (blocked && (!blocked_ || writer_.waiting() < waiting_before_)) progress_ns_ = host_.now_ns();
  waiting_before_ = writer_.waiting();
  if (blocked != blocked_) set_blocked(blocked);
}

void TransportStdio::set_blocked(bool blocked) {
  blocked_ = blocked;
  host_.modify(out_watch_, blocked ? std::uint32_t{BH_FD_WRITE} : 0u);
  if (blocked && stall_timer_ == 0) {
    stall_timer_ = host_.timer_start(up_->limits->write_stall_ms,
                                     bh::contained_callback<&TransportStdio::on_stall_timer>(this));
  }
  if (flow_ != nullptr && session_ != 0) flow_->output_full(host_.ctx(), session_, blocked ? 1 : 0);
}

// A single timer runs while output is blocked. A timer for each write would cost more.
void TransportStdio::on_stall_timer() {
  stall_timer_ = 0;
  if (!blocked_) return;
  const std::uint64_t limit = up_->limits->write_stall_ms;
  const bool patient = flow_ != nullptr && input_open_;
  const std::uint64_t idle = patient ? 0 : (host_.now_ns() - progress_ns_) / 1'000'000;
  if (idle >= limit) {
    host_.log(BH_LOG_WARN, "the client does not read standard output; its session is closed");
    return client_gone();
  }
  stall_timer_ = host_.timer_start(limit - idle,
                                   bh::contained_callback<&TransportStdio::on_stall_timer>(this));
}

// ---- shutdown ----------------------------------------------------------------------------------

void TransportStdio::client_gone() {
  const bh_session session = std::exchange(session_, 0);
  input_open_ = false;
  unwatch();
  writer_.drop();
  blocked_ = false;
  if (session != 0) up_->session_close(host_.ctx(), session, BH_SESSION_GONE);
  finish();
}

void TransportStdio::session_ended(bh_session session, bh_str) {
  if (session == 0 || session != session_) return;
  session_ = 0;
  input_open_ = false;
  host_.unwatch(in_watch_);
  // Queued output is still written, by turn_end(), the output watch's callback or stop().
  finish();
}

void TransportStdio::finish() {
  if (!std::exchange(finished_, true)) up_->finished(host_.ctx());
}

void TransportStdio::unwatch() noexcept {
  host_.unwatch(in_watch_);
  host_.unwatch(out_watch_);
  host_.timer_cancel(stall_timer_);
}

// The host calls stop() after it has forwarded all responses. The last responses may still be in
// the queue.
void TransportStdio::write_last() noexcept {
  stdio_lines::block_pipe_signal();  // this may be another thread
  const std::uint64_t end = bh::monotonic_ns() + last_write_ms * 1'000'000;
  while (writer_.waiting() > 0 && flush() == Flush::blocked && bh::monotonic_ns() < end) {
    pollfd ready{out_, POLLOUT, 0};
    if (::poll(&ready, 1, last_stall_ms) <= 0) return;
  }
}

void TransportStdio::stop() noexcept {
  if (!host_.has_reactor()) return;
  unwatch();
  write_last();
  writer_.drop();
  session_ = 0;
  input_open_ = false;
  if (in_flags_ >= 0) ::fcntl(in_, F_SETFL, in_flags_);
  if (out_flags_ >= 0) ::fcntl(out_, F_SETFL, out_flags_);
  in_flags_ = out_flags_ = -1;
  if (std::exchange(own_out_, false)) ::close(out_);
}

}  // namespace transport_stdio
