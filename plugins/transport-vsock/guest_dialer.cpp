#include "transport-vsock/guest_dialer.hpp"

#include <bulkhead/cpp/text.hpp>

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace transport_vsock {

void GuestDialer::start(const Address &address, std::string name, std::uint64_t reply_ms) {
  address_ = address;
  name_ = std::move(name);
  reply_ms_ = reply_ms;
  stopped_ = false;
  try_now();
}

void GuestDialer::stop() noexcept {
  stopped_ = true;
  host_.unwatch(watch_);
  host_.timer_cancel(timer_);
  socket_ = Socket();
}

void GuestDialer::connection_ended() {
  if (!stopped_) failed("the connection was closed");
}

void GuestDialer::try_now() {
  timer_ = 0;
  request_ = "CONNECT " + std::to_string(address_.guest_port) + "\n";
  reply_.clear();
  const bh_status status =
      dial(host_, address_, alive_, [this](Socket socket, const std::string &error) {
        if (!stopped_) dialled(std::move(socket), error);
      });
  if (status != BH_OK) failed("the host has no free thread");
}

void GuestDialer::dialled(Socket socket, const std::string &error) {
  if (socket.get() < 0) return failed(error);
  socket_ = std::move(socket);
  if (host_.watch(socket_.get(), BH_FD_READ | BH_FD_WRITE,
                  bh::fd_callback<&GuestDialer::on_event>(this), &watch_) != BH_OK) {
    return failed("the host cannot watch the socket");
  }
  timer_ = host_.timer_start(reply_ms_, bh::callback<&GuestDialer::reply_overdue>(this));
}

void GuestDialer::on_event(std::uint32_t events) noexcept {
  if ((events & BH_FD_WRITE) != 0) return write_request();
  read_reply();
}

void GuestDialer::write_request() {
  const ssize_t n = ::send(socket_.get(), request_.data(), request_.size(), MSG_NOSIGNAL);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n < 0) return failed(bh::error_name(errno));
  request_.erase(0, static_cast<std::size_t>(n));
  if (request_.empty()) host_.modify(watch_, BH_FD_READ);
}

void GuestDialer::read_reply() {
  char bytes[max_reply];
  const ssize_t n = ::recv(socket_.get(), bytes, sizeof bytes, 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (n <= 0)
    return failed(
        "the monitor closed the connection: no process is listening on that port in the guest");
  reply_.append(bytes, static_cast<std::size_t>(n));
  const std::size_t end = reply_.find('\n');
  if (end == reply_.npos && reply_.size() < max_reply) return;
  if (end == reply_.npos || !reply_.starts_with("OK "))
    return failed("the monitor did not respond with OK");
  host_.unwatch(watch_);
  host_.timer_cancel(timer_);
  pause_ms_ = min_pause_ms;
  last_failure_.clear();
  const std::string reply = std::move(reply_);
  connected_(socket_.release(), std::string_view(reply).substr(end + 1));
}

void GuestDialer::reply_overdue() {
  timer_ = 0;
  failed("the monitor did not respond in time");
}

// Schedules the next attempt. Logs the failure unless the previous failure had the same reason.
void GuestDialer::failed(const std::string &why) {
  host_.unwatch(watch_);
  host_.timer_cancel(timer_);
  socket_ = Socket();
  if (why != last_failure_) host_.log(BH_LOG_WARN, "no connection to " + name_ + ": " + why);
  last_failure_ = why;
  timer_ = host_.timer_start(pause_ms_, bh::callback<&GuestDialer::try_now>(this));
  pause_ms_ = std::min(pause_ms_ * 2, max_pause_ms);
}

}  // namespace transport_vsock
