#include "connector-stdio/lane.hpp"

#include <bulkhead/cpp/clock.hpp>
#include <bulkhead/cpp/messages.hpp>
#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <span>
#include <utility>

#include "stdio-lines/text.hpp"

namespace connector_stdio {
namespace {

using stdio_lines::Flush;
using stdio_lines::ReadEnd;

// Size of a pipe after its first large message. Other pipes keep the default size of 64 KiB.
constexpr int large_pipe = 1 << 20;

void close_fd(int *fd) {
  if (*fd >= 0) ::close(std::exchange(*fd, -1));
}

}  // namespace

Lane::Lane(Shared &shared, bh_lane handle)
    : shared_(shared),
      handle_(handle),
      reader_(shared.up->limits->message_bytes),
      writer_(shared.up->limits->write_queue_bytes) {}

Lane::~Lane() {
  shared_.host.timer_cancel(timer_);
  shared_.host.timer_cancel(banner_timer_);
  for (Watched *w : {&in_, &out_, &err_, &process_}) release(w);
  bh::contained([this] { keep_stderr(mask_.finish()); });
}

void Lane::release(Watched *watched) {
  shared_.host.unwatch(watched->watch);
  close_fd(&watched->fd);
}

bh_status Lane::open(const bh_lane_info &info, bh_error *error) {
  Definition definition;
  bh_status status =
      parse_definition(bh::view(info.server), bh::view(info.definition), &definition, error);
  if (status != BH_OK) return status;
  std::string program;
  status = find_program(definition, &program, error);
  if (status != BH_OK) return status;
  server_ = definition.server;
  connect_timeout_ms_ = info.connect_timeout_ms;
  opened_ns_ = bh::monotonic_ns();
  status = start_child(definition, info.definition, program, error);
  if (status != BH_OK) return status;
  mask_.use(std::move(definition.hidden));
  if (!definition.stderr_file.empty()) {
    stderr_file_ = shared_.stderr_file(definition.stderr_file, definition.stderr_bytes);
  }
  status = watch_child(error);
  if (status != BH_OK) {
    kill(SIGKILL);
    pollfd ready{process_.fd, POLLIN, 0};
    while (::poll(&ready, 1, -1) < 0 && errno == EINTR) {
    }
    reap(0);
  }
  return status;
}

bh_status Lane::start_child(const Definition &definition, bh_str json, const std::string &program,
                            bh_error *error) {
  std::vector<bh_str> argv{bh::str(definition.command)}, env;
  for (const std::string &arg : definition.args) argv.push_back(bh::str(arg));
  for (const std::string &variable : definition.env) env.push_back(bh::str(variable));
  bh_spawn request{};
  request.size = sizeof request;
  request.server = bh::str(server_);
  request.definition = json;
  request.program = bh::str(program);
  request.argv = argv.data();
  request.argc = static_cast<std::uint32_t>(argv.size());
  request.env = env.data();
  request.envc = static_cast<std::uint32_t>(env.size());
  request.cwd = bh::str(definition.cwd);
  bh_child child{};
  child.size = sizeof child;
  const bh_status status = shared_.children->spawn(shared_.host.ctx(), &request, &child, error);
  if (status != BH_OK) return status;
  child_ = child.id;
  in_.fd = child.in;
  out_.fd = child.out;
  err_.fd = child.err;
  process_.fd = child.pidfd;
  return BH_OK;
}

bh_status Lane::watch_child(bh_error *error) {
  const auto watch = [this](Watched *w, bh::FdCallback handler) {
    return shared_.host.watch(w->fd, BH_FD_READ, handler, &w->watch) == BH_OK;
  };
  const bool good = watch(&process_, bh::contained_fd_callback<&Lane::on_exit>(this)) &&
                    watch(&out_, bh::contained_fd_callback<&Lane::on_output>(this)) &&
                    watch(&err_, bh::contained_fd_callback<&Lane::on_stderr>(this));
  return good ? BH_OK
              : bh::fail(error, BH_E_LIMIT, quoted() + ": the gateway cannot watch its pipes");
}

// ---- to the child ------------------------------------------------------------------------------

bh_status Lane::send(const bh_lane_message &message, bh_error *error) {
  if (closing_ || down_ || in_.fd < 0) {
    return bh::fail(error, BH_E_UNAVAILABLE, quoted() + " is stopping");
  }
  const std::span<const bh_str> parts(message.parts, message.part_count);
  bool taken = false;
  if (stdio_lines::total_size(parts) > stdio_lines::large_message && in_.watch == 0) {
    grow_pipe(in_.fd, &in_grown_);
    after_flush(writer_.add_and_flush(in_.fd, parts, &taken));
  } else {
    taken = writer_.add(parts);
    if (taken && in_.watch == 0) shared_.flush_later(*this);
  }
  if (taken) return BH_OK;
  return bh::fail(error, BH_E_LIMIT, quoted() + " reads too slowly: its queue is full");
}

void Lane::flush() {
  if (in_.fd >= 0 && in_.watch == 0) after_flush(writer_.flush(in_.fd));
}

void Lane::after_flush(Flush result) {
  if (result == Flush::broken) return input_broken();
  if (result == Flush::done) return shared_.host.unwatch(in_.watch);
  if (in_.watch != 0) return;
  // If the host rejects the watch, the next message requests it again. Until then, the queue limit
  // bounds the number of pending bytes.
  shared_.host.watch(in_.fd, BH_FD_WRITE, bh::contained_fd_callback<&Lane::on_input_writable>(this),
                     &in_.watch);
}

void Lane::on_input_writable() {
  after_flush(writer_.flush(in_.fd));
}

// The child has closed its standard input, usually because it exited. Waits for the exit, so that
// the exit status can be reported.
void Lane::input_broken() {
  release(&in_);
  writer_.drop();
  if (!closing_ && !down_ && wait_ == Wait::nothing) wait_for(Wait::exit_after_end, exit_wait_ms);
}

void Lane::grow_pipe(int fd, bool *grown) {
  if (!*grown) ::fcntl(fd, F_SETPIPE_SZ, large_pipe);
  *grown = true;
}

// ---- from the child ----------------------------------------------------------------------------

void Lane::on_output() {
  const ReadEnd end = reader_.read(out_.fd, shared_.scratch, *this, read_budget);
  if (end == ReadEnd::drained || end == ReadEnd::budget) return;
  if (end == ReadEnd::ended) reader_.finish(*this);
  output_ended();
}

void Lane::output_ended() {
  release(&out_);
  if (!closing_ && !down_ && wait_ == Wait::nothing) wait_for(Wait::exit_after_end, exit_wait_ms);
}

bool Lane::on_line(std::string_view line) {
  if (closing_ || down_) return true;  // keep reading; otherwise the child could block in write()
  const std::size_t start = line.find_first_not_of(" \t");
  if (line[start] != '{' && line[start] != '[') {
    on_noise(line);
    return true;
  }
  has_sent_message_ = true;
  if (line.size() > stdio_lines::large_message && out_.fd >= 0) grow_pipe(out_.fd, &out_grown_);
  shared_.up->message(shared_.host.ctx(), handle_, 0, bh::str(line));
  return true;
}

bool Lane::on_too_long(std::string_view start) {
  const std::size_t first = start.find_first_not_of(" \t");
  if (closing_ || down_) return true;
  if (first == std::string_view::npos || (start[first] != '{' && start[first] != '[')) {
    on_noise(start);
    return true;
  }
  report_down(BH_E_PROTOCOL, quoted() + " sent a message of more than " +
                                 std::to_string(shared_.up->limits->message_bytes) +
                                 " bytes (limits.message_bytes)");
  return false;
}

// Handles a line on standard output that is not a message. Such lines, for example banners, are
// common, so they do not close the lane.
void Lane::on_noise(std::string_view line) {
  shared_.count_noise();
  if (std::exchange(noise_logged_, true)) return;
  // The line is masked again after colour codes are removed, because a colour code may have split a
  // value.
  const std::string shown = mask_.mask(stdio_lines::cleaned(mask_.mask(line.substr(0, 400)), 400));
  banner_ = stdio_lines::cleaned(shown, 80);
  shared_.host.log(BH_LOG_WARN, quoted() +
                                    " wrote lines to standard output that are not MCP messages and "
                                    "are ignored; the first line: " +
                                    banner_);
  write_log("[bulkhead: standard output has lines that are not MCP messages; the first line: " +
            banner_ + "]\n");
  if (has_sent_message_) return;
  const std::uint64_t margin_ms = std::min(banner_margin_ms, connect_timeout_ms_ / 4);
  const std::uint64_t passed_ms = (bh::monotonic_ns() - opened_ns_) / 1'000'000;
  const std::uint64_t end_ms = connect_timeout_ms_ - margin_ms;
  banner_timer_ = shared_.host.timer_start(end_ms > passed_ms ? end_ms - passed_ms : 1,
                                           bh::contained_callback<&Lane::on_banner_timer>(this));
}

void Lane::on_banner_timer() {
  banner_timer_ = 0;
  if (has_sent_message_) return;
  report_down(BH_E_TIMEOUT, quoted() + " did not respond within " +
                                std::to_string(connect_timeout_ms_ / 1'000) + " s" +
                                describe_banner());
}

std::string Lane::describe_banner() const {
  if (banner_.empty() || has_sent_message_) return {};
  return "; it printed \"" + banner_ + "\" to standard output, which must carry only MCP messages";
}

void Lane::on_stderr() {
  if (read_stderr()) return;
  release(&err_);
  keep_stderr(mask_.finish());
}

// Performs one read. Returns false at end of file or on error.
bool Lane::read_stderr() {
  char *const buffer = shared_.scratch.data.get();
  const ssize_t n = ::read(err_.fd, buffer, stderr_budget);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  if (n == 0) return false;
  keep_stderr(mask_.add({buffer, static_cast<std::size_t>(n)}));
  return true;
}

void Lane::keep_stderr(std::string_view masked) {
  if (masked.empty()) return;
  tail_.add(masked);
  write_log(masked);
}

void Lane::write_log(std::string_view masked) {
  int number = 0;
  if (stderr_file_ != nullptr && !stderr_file_->write(masked, &number)) {
    shared_.host.log(
        BH_LOG_WARN,
        quoted() + ": its standard error cannot be written to the file: " + bh::error_name(number));
  }
}

// ---- shutdown ----------------------------------------------------------------------------------

void Lane::wait_for(Wait what, std::uint64_t ms) {
  shared_.host.timer_cancel(timer_);
  wait_ = what;
  timer_ = shared_.host.timer_start(ms, bh::contained_callback<&Lane::on_timer>(this));
}

void Lane::on_timer() {
  timer_ = 0;
  const Wait was = std::exchange(wait_, Wait::nothing);
  const std::uint64_t grace = shared_.up->limits->shutdown_grace_ms;
  if (was == Wait::exit_after_end) {
    drain();
    report_down(BH_E_UNAVAILABLE, quoted() + " has closed its " +
                                      (out_.fd < 0 ? "standard output" : "standard input") +
                                      " without exiting");
  } else if (was == Wait::exit_after_close) {
    kill(SIGTERM);
    wait_for(Wait::exit_after_term, grace);
  } else if (was == Wait::exit_after_term) {
    shared_.host.log(
        BH_LOG_WARN,
        quoted() + " did not exit after the end of its input and SIGTERM; killing it with SIGKILL");
    kill(SIGKILL);
  }
}

void Lane::close() {
  closing_ = true;
  shared_.host.timer_cancel(timer_);
  flush();  // sends recently queued messages such as a cancellation; the rest is discarded
  release(&in_);
  writer_.drop();
  if (child_ == 0) {
    if (!std::exchange(done_, true)) shared_.finished(*this);
    return;
  }
  wait_for(Wait::exit_after_close, shared_.up->limits->shutdown_grace_ms);
}

void Lane::kill(int signal) const noexcept {
  if (child_ != 0) shared_.children->kill(shared_.host.ctx(), child_, signal);
}

// Reads the responses and the standard error output that the child wrote before it exited.
void Lane::drain() {
  // The number of reads is limited, because a process that left the child's process group may keep
  // writing to the pipes.
  for (int i = 0; i < 4 && out_.fd >= 0; ++i) {
    const ReadEnd end = reader_.read(out_.fd, shared_.scratch, *this, read_budget);
    if (end == ReadEnd::budget) continue;
    if (end == ReadEnd::ended) reader_.finish(*this);
    break;
  }
  for (int i = 0; i < 16 && err_.fd >= 0; ++i) {
    pollfd ready{err_.fd, POLLIN, 0};
    if (::poll(&ready, 1, 0) <= 0 || !read_stderr()) break;
  }
}

void Lane::on_exit() {
  kill(SIGKILL);  // kills the processes that the child started
  drain();
  if (!reap(0)) return;
  shared_.host.timer_cancel(timer_);
  for (Watched *w : {&in_, &out_, &err_}) release(w);
  keep_stderr(mask_.finish());
  writer_.drop();
  if (end_.how == BH_CHILD_NOT_STARTED) {
    report_down(start_error_.code, std::string(bh::text(start_error_)));
  } else {
    report_down(BH_E_UNAVAILABLE, describe_exit());
  }
  if (closing_ && !std::exchange(done_, true)) shared_.finished(*this);
}

bool Lane::reap(std::uint64_t deadline_ns) {
  if (child_ == 0) return true;
  const std::uint64_t now = deadline_ns == 0 ? 0 : bh::monotonic_ns();
  if (deadline_ns > now) {
    pollfd ready{process_.fd, POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>((deadline_ns - now) / 1'000'000));
  }
  end_.size = sizeof end_;
  end_.why = &start_error_;
  if (shared_.children->reap(shared_.host.ctx(), child_, &end_) == BH_PENDING) return false;
  child_ = 0;
  release(&process_);
  return true;
}

std::string Lane::describe_exit() const {
  std::string text = quoted();
  if (end_.how == BH_CHILD_EXITED) {
    text += " exited with status " + std::to_string(end_.status);
  } else if (end_.how == BH_CHILD_KILLED) {
    const char *name = ::sigabbrev_np(end_.status);
    text += " was killed by signal " + std::to_string(end_.status);
    if (name != nullptr) text += std::string(" (SIG") + name + ")";
  } else {
    text += " has exited";
  }
  return text + describe_banner();
}

void Lane::report_down(bh_status code, const std::string &what) {
  if (down_ || closing_) return;
  down_ = true;
  constexpr std::string_view introduction = "; its last lines: ";
  const std::size_t used = what.size() + introduction.size();
  constexpr std::size_t room = sizeof(bh_error::text);
  // The lines are masked again after colour codes are removed, because a colour code may have split
  // a value.
  const std::string lines = mask_.mask(tail_.text(used < room ? room - used : 0));
  const bh_error error =
      bh::make_error(code, lines.empty() ? what : what + std::string(introduction) + lines);
  const bh_lane_failure failure = bh::lane_failure(error);
  shared_.up->lane_down(shared_.host.ctx(), handle_, &failure);
}

}  // namespace connector_stdio
