#include "transport-aggregator/transport_aggregator.hpp"

#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <poll.h>
#include <rapidjson/document.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <utility>

#include "stdio-lines/line_writer.hpp"
#include "transport-aggregator/replies.hpp"

namespace transport_aggregator {
namespace {

using bh::aggregator::Codec;
using bh::aggregator::FrameCutter;

template <class Number>
bool read_number(const rapidjson::Value &root, const char *name, Number *out) {
  const auto it = root.FindMember(name);
  if (it == root.MemberEnd()) return true;
  if (!it->value.IsString()) return false;
  const char *const begin = it->value.GetString();
  const char *const end = begin + it->value.GetStringLength();
  const auto [stop, problem] = std::from_chars(begin, end, *out);
  return problem == std::errc() && stop == end && *out >= Number{};
}

bool read_names(const rapidjson::Value &root, const char *name, std::vector<std::string> *out) {
  const auto it = root.FindMember(name);
  if (it == root.MemberEnd()) return true;
  if (!it->value.IsArray()) return false;
  for (const auto &each : it->value.GetArray()) {
    if (!each.IsString()) return false;
    out->emplace_back(each.GetString(), each.GetStringLength());
  }
  return true;
}

bool read_codec(const rapidjson::Value &root, Codec *out) {
  const auto it = root.FindMember("codec");
  if (it == root.MemberEnd()) return true;
  if (!it->value.IsString()) return false;
  const std::string_view text(it->value.GetString(), it->value.GetStringLength());
  *out = text == "ndjson" ? Codec::ndjson : text == "msgpack" ? Codec::msgpack : Codec::automatic;
  return text == "auto" || *out != Codec::automatic;
}

}  // namespace

TransportAggregator::TransportAggregator(const bh_host *host)
    : host_(host),
      up_(host_.ext<bh_host_transport>(BH_EXT_HOST_TRANSPORT)),
      control_(host_.ext<bh_host_control>(BH_EXT_HOST_CONTROL)) {}

bh_status TransportAggregator::configure(bh_str json, bh_error *error) {
  if (up_ == nullptr || up_->limits == nullptr || !host_.has_reactor()) {
    return bh::fail(error, BH_E_UNSUPPORTED,
                    "transport-aggregator requires a host with " BH_EXT_HOST_TRANSPORT
                    ", " BH_EXT_HOST_EXECUTOR " and " BH_EXT_HOST_FD);
  }
  if (control_ == nullptr) {
    return bh::fail(
        error, BH_E_DENIED,
        "transport-aggregator is not allowed to set servers; add grants = [\"control\"] to its "
        "section of the "
        "profile");
  }
  // Numbers are kept as strings, so RapidJSON scans them but does not convert them.
  constexpr unsigned flags = rapidjson::kParseIterativeFlag |
                             rapidjson::kParseValidateEncodingFlag |
                             rapidjson::kParseNumbersAsStringsFlag;
  rapidjson::Document root;
  root.Parse<flags>(json.p, json.n);
  if (root.HasParseError() || !root.IsObject() || !read_number(root, "in_fd", &in_) ||
      !read_number(root, "out_fd", &out_) || !read_codec(root, &wanted_codec_) ||
      !read_names(root, "slow_commands", &slow_.commands) ||
      !read_number(root, "slow_connect_ms", &slow_.connect_ms)) {
    return bh::fail(
        error, BH_E_INVALID,
        "in_fd and out_fd must be descriptor numbers, codec must be auto, ndjson or msgpack, "
        "slow_commands must be an array of strings, and slow_connect_ms must be a number");
  }
  return BH_OK;
}

bh_status TransportAggregator::start(bh_error *error) {
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
  buffer_ = std::make_unique<char[]>(read_size);
  cutter_ = FrameCutter(wanted_codec_);
  return BH_OK;
}

bh_status TransportAggregator::listen(bh_error *error) {
  const bh_status status = host_.post(bh::contained_callback<&TransportAggregator::begin>(this));
  return status == BH_OK ? BH_OK : bh::fail(error, status, "the host's queue is full");
}

void TransportAggregator::begin() {
  stdio_lines::block_pipe_signal();
  // Reads the flags of the two descriptors before changing them, because the descriptors may refer
  // to the same open file (a terminal, a socket).
  const int in_before = ::fcntl(in_, F_GETFL), out_before = ::fcntl(out_, F_GETFL);
  if (::fcntl(in_, F_SETFL, in_before | O_NONBLOCK) == 0) in_flags_ = in_before;
  if (::fcntl(out_, F_SETFL, out_before | O_NONBLOCK) == 0) out_flags_ = out_before;
  open_session();
  if (session_ == 0) return end();
  input_open_ = true;
  // A watch without events reports only that the client has disconnected. It fails for regular
  // files, which never block.
  host_.watch(out_, 0, bh::contained_fd_callback<&TransportAggregator::on_output_event>(this),
              &out_watch_);
  const bh_status status = host_.watch(
      in_, BH_FD_READ, bh::contained_fd_callback<&TransportAggregator::on_input>(this), &in_watch_);
  if (status != BH_OK) on_plain_input();
}

// ---- from the client ---------------------------------------------------------------------------

void TransportAggregator::on_input() {
  for (std::size_t used = 0; used < read_budget && input_open_; used += read_size) {
    if (!read_some()) return;
  }
}

// A regular file or /dev/null cannot be watched and is always readable. It is read once per event
// loop iteration.
void TransportAggregator::on_plain_input() {
  if (!input_open_) return;
  read_some();
  if (input_open_ &&
      host_.post(bh::contained_callback<&TransportAggregator::on_plain_input>(this)) != BH_OK) {
    input_ended();
  }
}

// Returns true if more data may be available. Returns false after a short read, at the end of the
// input, or if the stream has become unreadable.
bool TransportAggregator::read_some() {
  ssize_t n = 0;
  do {
    n = ::read(in_, buffer_.get(), read_size);
  } while (n < 0 && errno == EINTR);
  if (n < 0 && errno == EAGAIN) return false;
  if (n <= 0) {
    input_ended();
    return false;
  }
  cutter_.add({buffer_.get(), static_cast<std::size_t>(n)});
  if (!process_messages()) {
    input_ended();
    return false;
  }
  return static_cast<std::size_t>(n) == read_size;
}

// Returns false if the stream has become unreadable.
bool TransportAggregator::process_messages() {
  while (phase_ != Phase::ended) {
    switch (cutter_.next()) {
      case FrameCutter::Next::message:
        on_message(cutter_.message());
        break;
      case FrameCutter::Next::too_long:
        skipped("it is longer than 1 MiB");
        break;
      case FrameCutter::Next::more:
        return true;
      case FrameCutter::Next::broken:
        host_.log(BH_LOG_ERROR,
                  "a message declares a length of more than 16 MiB, so the rest of the input "
                  "cannot be read");
        return false;
    }
  }
  return true;
}

void TransportAggregator::input_ended() {
  if (!input_open_) return;
  if (cutter_.last_line()) on_message(cutter_.message());
  if (!std::exchange(input_open_, false)) return;  // a shutdown request has closed the input
  host_.unwatch(in_watch_);
  draining_ = true;
  if (phase_ == Phase::definitions) return end();
  drain_timer_ =
      host_.timer_start(drain_ms, bh::contained_callback<&TransportAggregator::drain_over>(this));
  flush_later();  // ends the session if no requests are pending
}

void TransportAggregator::drain_over() {
  drain_timer_ = 0;
  if (open_requests() > 0) {
    host_.log(BH_LOG_WARN, "the input was closed; " + std::to_string(open_requests()) +
                               " requests in flight are abandoned");
  }
  fail_all("the aggregator's input was closed");
  end();
}

// ---- to the client -----------------------------------------------------------------------------

// Encodes one message with the client's codec and queues it.
void TransportAggregator::queue(std::string_view text) {
  if (disconnected_) return;
  if (queue_.waiting() > 0 && queue_.waiting() + text.size() > up_->limits->write_queue_bytes) {
    host_.log(BH_LOG_ERROR, "the client does not read its replies; its session is closed");
    disconnected_ = true;
    return flush_later();
  }
  const char *why = bh::aggregator::append_message(cutter_.codec(), text, &queue_.bytes());
  if (why != nullptr) queue_instead(text, why);
  flush_later();
}

// Queues an error in place of a reply, because the client waits for a reply with this ID.
void TransportAggregator::queue_instead(std::string_view text, const char *why) {
  host_.log(BH_LOG_WARN, std::string("a reply cannot be sent: ") + why);
  std::uint64_t id = 0;
  const std::string_view token = bh::json::member(text, "id");
  std::from_chars(token.data(), token.data() + token.size(), id);
  bh::aggregator::append_message(cutter_.codec(),
                                 error_reply(id, std::string("the reply cannot be sent: ") + why),
                                 &queue_.bytes());
}

void TransportAggregator::flush_later() {
  if (std::exchange(deferred_, true)) return;
  host_.defer(bh::contained_callback<&TransportAggregator::turn_end>(this));
}

void TransportAggregator::turn_end() {
  deferred_ = false;
  if (!disconnected_ && !blocked_) after_flush(queue_.flush(out_));
  if (disconnected_) return client_gone();
  end_if_drained();
}

void TransportAggregator::on_output_event() {
  const bool closed = !blocked_;  // without blocked output, only errors are reported
  if (!closed) after_flush(queue_.flush(out_));
  if (closed || disconnected_) return client_gone();
  end_if_drained();
}

void TransportAggregator::after_flush(OutQueue::Flush result) {
  if (result == OutQueue::Flush::broken) {
    disconnected_ = true;
    return flush_later();
  }
  const bool blocked = result == OutQueue::Flush::blocked;
  if (blocked && (!blocked_ || queue_.waiting() < waiting_before_)) progress_ns_ = host_.now_ns();
  waiting_before_ = queue_.waiting();
  if (blocked == blocked_) return;
  blocked_ = blocked;
  host_.modify(out_watch_, blocked ? std::uint32_t{BH_FD_WRITE} : 0u);
  if (blocked && stall_timer_ == 0) {
    stall_timer_ =
        host_.timer_start(up_->limits->write_stall_ms,
                          bh::contained_callback<&TransportAggregator::on_stall_timer>(this));
  }
}

// A single timer runs while output is blocked. A timer for each write would cost more.
void TransportAggregator::on_stall_timer() {
  stall_timer_ = 0;
  if (!blocked_) return;
  const std::uint64_t limit = up_->limits->write_stall_ms;
  const std::uint64_t idle = (host_.now_ns() - progress_ns_) / 1'000'000;
  if (idle >= limit) {
    host_.log(BH_LOG_WARN, "the client does not read; its session is closed");
    return client_gone();
  }
  stall_timer_ = host_.timer_start(
      limit - idle, bh::contained_callback<&TransportAggregator::on_stall_timer>(this));
}

// ---- shutdown ----------------------------------------------------------------------------------

void TransportAggregator::client_gone() {
  disconnected_ = true;
  blocked_ = false;
  queue_.drop();
  end();
}

void TransportAggregator::end_if_drained() {
  if (draining_ && phase_ != Phase::ended && open_requests() == 0) end();
}

// Stops reading and closes the session. Queued output is still written, by turn_end(), the output
// watch's callback or stop().
void TransportAggregator::end() {
  phase_ = Phase::ended;
  input_open_ = false;
  host_.unwatch(in_watch_);
  host_.timer_cancel(drain_timer_);
  host_.timer_cancel(retry_timer_);
  if (disconnected_) host_.unwatch(out_watch_);
  const bh_session session = std::exchange(session_, 0);
  if (session != 0) up_->session_close(host_.ctx(), session, BH_SESSION_GONE);
  finish();
}

void TransportAggregator::session_ended(bh_session session, bh_str) {
  if (session == 0 || session != session_) return;
  session_ = 0;
  fail_all("the aggregator is stopping");
  end();
}

void TransportAggregator::finish() {
  if (!std::exchange(finished_, true)) up_->finished(host_.ctx());
}

void TransportAggregator::unwatch() noexcept {
  host_.unwatch(in_watch_);
  host_.unwatch(out_watch_);
  for (bh_timer *timer : {&stall_timer_, &drain_timer_, &retry_timer_}) {
    host_.timer_cancel(*timer);
  }
}

// The host calls stop() after it has forwarded all responses. The last responses may still be in
// the queue.
void TransportAggregator::write_last() noexcept {
  stdio_lines::block_pipe_signal();  // this may be another thread
  const std::uint64_t end = bh::monotonic_ns() + last_write_ms * 1'000'000;
  while (queue_.waiting() > 0 && queue_.flush(out_) == OutQueue::Flush::blocked &&
         bh::monotonic_ns() < end) {
    pollfd ready{out_, POLLOUT, 0};
    if (::poll(&ready, 1, last_stall_ms) <= 0) return;
  }
}

void TransportAggregator::stop() noexcept {
  if (!host_.has_reactor()) return;
  unwatch();
  write_last();
  queue_.drop();
  replacing_.clear();  // the host calls no more callbacks
  session_ = 0;
  input_open_ = false;
  if (in_flags_ >= 0) ::fcntl(in_, F_SETFL, in_flags_);
  if (out_flags_ >= 0) ::fcntl(out_, F_SETFL, out_flags_);
  in_flags_ = out_flags_ = -1;
  if (std::exchange(own_out_, false)) ::close(out_);
}

}  // namespace transport_aggregator
