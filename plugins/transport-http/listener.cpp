#include "listener.hpp"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace transport_http {

namespace {

std::string reason(int error) {
  // The GNU variant: the text may or may not lie in the buffer.
  char buffer[128];
  return ::strerror_r(error, buffer, sizeof buffer);
}

// A socket file without a server is left behind by a killed process; it would block the address.
void remove_stale(const ListenAddress &address) {
  struct stat info{};
  if (::lstat(address.unix_path.c_str(), &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return;
  const int result =
      ::connect(probe, reinterpret_cast<const sockaddr *>(&address.address), address.size);
  if (result != 0 && errno == ECONNREFUSED) ::unlink(address.unix_path.c_str());
  ::close(probe);
}

}  // namespace

bh_status Listener::open(const ListenAddress &address, std::string_view as_configured,
                         bh_error *error) {
  const bh_status status = bind(address, as_configured, error);
  if (status != BH_OK) {
    close();
    return status;
  }
  socklen_t size = sizeof bound_;
  ::getsockname(fd_, reinterpret_cast<sockaddr *>(&bound_), &size);
  if (host_.watch(fd_, BH_FD_READ, &Listener::on_event, this, &watch_) != BH_OK) {
    close();
    return bh::fail(error, BH_E_IO, "the host cannot watch the listening socket");
  }
  return BH_OK;
}

bh_status Listener::bind(const ListenAddress &address, std::string_view as_configured,
                         bh_error *error) {
  const int family = address.address.ss_family;
  fd_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return bh::fail(error, BH_E_IO, "socket: " + reason(errno));
  const int on = 1;
  if (family == AF_UNIX) {
    remove_stale(address);
  } else {
    ::setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // Inherited by accepted sockets: one system call less for each of them.
    ::setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  const mode_t mask = family == AF_UNIX ? ::umask(0177) : 0;
  const int bound = ::bind(fd_, reinterpret_cast<const sockaddr *>(&address.address), address.size);
  const int why = errno;
  if (family == AF_UNIX) ::umask(mask);
  if (bound == 0 && family == AF_UNIX) unix_path_ = address.unix_path;
  if (bound == 0 && ::listen(fd_, 1024) == 0) return BH_OK;
  const int failed = bound == 0 ? errno : why;
  std::string text = "cannot listen on " + std::string(as_configured) + ": ";
  if (failed == EADDRINUSE) {
    text +=
        "the address is already in use by another program; stop that, or choose another one with "
        "--listen, for example --listen 127.0.0.1:0 for any free port";
  } else {
    text += reason(failed);
  }
  return bh::fail(error, BH_E_IO, text);
}

void Listener::close() noexcept {
  host_.unwatch(watch_);
  host_.timer_cancel(pause_);
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
  if (!unix_path_.empty()) ::unlink(unix_path_.c_str());
  unix_path_.clear();
}

void Listener::on_event(void *arg, std::int32_t, std::uint32_t) noexcept {
  static_cast<Listener *>(arg)->accept_batch();
}

void Listener::accept_batch() {
  for (int i = 0; i < batch && fd_ >= 0; ++i) {
    sockaddr_storage peer{};
    socklen_t size = sizeof peer;
    const int fd =
        ::accept4(fd_, reinterpret_cast<sockaddr *>(&peer), &size, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
      warned_ = false;
      accepted_(fd, to_text(peer));
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) pause(errno);
    if (errno != ECONNABORTED && errno != EINTR) return;
  }
}

void Listener::pause(int error) {
  if (!warned_) {
    host_.log(BH_LOG_WARN, "no new connections for a second: " + reason(error) +
                               " (raise the limit of open files)");
  }
  warned_ = true;
  host_.modify(watch_, 0);
  pause_ = host_.timer_start(pause_ms, &Listener::on_pause_over, this);
}

void Listener::on_pause_over(void *arg) noexcept {
  auto &self = *static_cast<Listener *>(arg);
  self.pause_ = 0;
  self.host_.modify(self.watch_, BH_FD_READ);
}

}  // namespace transport_http
