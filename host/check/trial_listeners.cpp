#include "check/trial_listeners.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

namespace bulkhead::check {
namespace {

template <class Address>
OwnedFd listen_on(const Address &address, int family) {
  OwnedFd fd(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (fd.get() < 0) return fd;
  const auto *raw = reinterpret_cast<const sockaddr *>(&address);
  if (::bind(fd.get(), raw, sizeof address) != 0 || ::listen(fd.get(), 1) != 0) fd.reset();
  return fd;
}

}  // namespace

TrialListeners::TrialListeners(const std::string &folder) {
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  tcp4_ = listen_on(four, AF_INET);
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  tcp6_ = listen_on(six, AF_INET6);
  sockaddr_un local{};
  local.sun_family = AF_UNIX;
  const std::string path = folder + "/listener";
  if (path.size() < sizeof local.sun_path) {
    path.copy(local.sun_path, path.size());
    local_ = listen_on(local, AF_UNIX);
  }
}

int TrialListeners::of(int family) const noexcept {
  switch (family) {
    case AF_INET:
      return tcp4_.get();
    case AF_INET6:
      return tcp6_.get();
    case AF_UNIX:
    case AF_VSOCK:
      return local_.get();
    default:
      return -1;
  }
}

}  // namespace bulkhead::check
