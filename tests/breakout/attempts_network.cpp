#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "attempts.hpp"

namespace breakout {
namespace {

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

template <class Address>
int connect_to(int family, int type, const Address &address, socklen_t n) {
  const int fd = ::socket(family, type | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const int rc = ::connect(fd, reinterpret_cast<const sockaddr *>(&address), n);
  const int error = rc == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

int tcp(const Target &t) {
  const sockaddr_in address = loopback(t.tcp_port);
  return connect_to(AF_INET, SOCK_STREAM, address, sizeof address);
}

// Connects with sendto() instead of connect().
int tcp_fast_open(const Target &t) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const sockaddr_in address = loopback(t.tcp_port);
  const ssize_t n = ::sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr *>(&address), sizeof address);
  const int error = n >= 0 ? 0 : errno;
  ::close(fd);
  return error;
}

// Landlock does not treat MPTCP as TCP, but the peer may receive a plain TCP connection.
int tcp_by_mptcp(const Target &t) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_MPTCP);
  if (fd < 0) return errno;
  const sockaddr_in address = loopback(t.tcp_port);
  const int rc = ::connect(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address);
  const int error = rc == 0 ? 0 : errno;
  ::close(fd);
  return error;
}

// An inherited listener belongs to the outer network namespace.
int turned_listener(const Target &t) {
  if (::shutdown(t.listener, SHUT_RDWR) != 0) return errno;
  const sockaddr_in address = loopback(t.tcp_port);
  const ssize_t n = ::sendto(t.listener, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL,
                             reinterpret_cast<const sockaddr *>(&address), sizeof address);
  return n >= 0 ? 0 : errno;
}

int udp(const Target &t) {
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const sockaddr_in address = loopback(t.udp_port);
  const ssize_t n =
      ::sendto(fd, "x", 1, 0, reinterpret_cast<const sockaddr *>(&address), sizeof address);
  const int error = n == 1 ? 0 : errno;
  ::close(fd);
  return error;
}

int listen_on(const Target &) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  const sockaddr_in address = loopback(0);
  int error = 0;
  if (::bind(fd, reinterpret_cast<const sockaddr *>(&address), sizeof address) != 0) error = errno;
  ::close(fd);
  return error;
}

int raw_packets(const Target &) {
  const int fd = ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

// A vsock socket reaches the hypervisor and other guests from any network namespace. It is not
// connected to anything here.
int vsock(const Target &) {
  const int fd = ::socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  ::close(fd);
  return 0;
}

socklen_t unix_address(sockaddr_un *address, const std::string &name, bool abstract) {
  *address = {};
  address->sun_family = AF_UNIX;
  const std::size_t skip = abstract ? 1 : 0;
  const std::size_t n = std::min(name.size(), sizeof address->sun_path - 1 - skip);
  std::memcpy(address->sun_path + skip, name.data(), n);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + skip + n);
}

int service_socket(const Target &t) {
  sockaddr_un address;
  const socklen_t n = unix_address(&address, t.service_socket, false);
  return connect_to(AF_UNIX, SOCK_STREAM, address, n);
}

int abstract_socket(const Target &t) {
  sockaddr_un address;
  const socklen_t n = unix_address(&address, t.abstract_name, true);
  return connect_to(AF_UNIX, SOCK_STREAM, address, n);
}

// A socket of a datagram pair can be connected to another address.
int turned_pair(const Target &t) {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) != 0) return errno;
  sockaddr_un address;
  const socklen_t n = unix_address(&address, t.service_socket, false);
  const int rc = ::connect(pair[0], reinterpret_cast<const sockaddr *>(&address), n);
  // EPROTOTYPE means that the socket was reached but has a different type.
  const int error = rc == 0 || errno == EPROTOTYPE ? 0 : errno;
  ::close(pair[0]);
  ::close(pair[1]);
  return error;
}

}  // namespace

void add_network_attempts(std::vector<Attempt> *all) {
  all->insert(all->end(), {{"connect to a TCP port that is not allowed", tcp},
                           {"connect to it with MSG_FASTOPEN", tcp_fast_open},
                           {"connect to it with MPTCP", tcp_by_mptcp},
                           {"turn an inherited listener outward", turned_listener},
                           {"send a UDP packet", udp},
                           {"listen on a TCP port", listen_on},
                           {"open a packet socket", raw_packets},
                           {"open a vsock socket", vsock},
                           {"connect to the service socket", service_socket},
                           {"connect to an abstract socket", abstract_socket},
                           {"turn a socket pair to the service socket", turned_pair}});
}

}  // namespace breakout
