#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "plugin/services.hpp"
#include "plugin/text.hpp"

namespace bulkhead {
namespace {

constexpr int backlog = 1024;

// Removes a socket file that a killed process left behind, because the address could not be bound
// while the file exists.
void remove_stale(const sockaddr_un &address, socklen_t size) {
  struct stat info{};
  if (::lstat(address.sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) return;
  const OwnedFd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe) return;
  const int result = ::connect(probe.get(), reinterpret_cast<const sockaddr *>(&address), size);
  if (result != 0 && errno == ECONNREFUSED) ::unlink(address.sun_path);
}

// Returns the reason why a Unix socket could not be bound to its path.
const char *in_the_way(const sockaddr_un &address) {
  struct stat info{};
  if (::lstat(address.sun_path, &info) != 0 || S_ISSOCK(info.st_mode)) {
    return "another program is already listening there; stop it, or choose another path";
  }
  return "the path exists and is not a socket; remove it, or choose another path";
}

std::string failure(int error, std::string_view as_configured, const sockaddr_storage &address) {
  std::string text = "cannot listen on " + std::string(as_configured) + ": ";
  const int family = address.ss_family;
  if (family == AF_VSOCK && error == EADDRNOTAVAIL) {
    return text +
           "the context id does not belong to this machine; omit it to listen on every context id";
  }
  if (error != EADDRINUSE) return text + bh::error_name(error);
  if (family == AF_UNIX) return text + in_the_way(reinterpret_cast<const sockaddr_un &>(address));
  if (family == AF_VSOCK)
    return text + "another program uses the port; stop it, or choose another port";
  return text +
         "the address is already in use by another program; stop it, or choose another one with "
         "--listen, for example --listen 127.0.0.1:0 for any free port";
}

bool known(const sockaddr_storage &address, std::size_t size) {
  switch (address.ss_family) {
    case AF_INET:
      return size == sizeof(sockaddr_in);
    case AF_INET6:
      return size == sizeof(sockaddr_in6);
    case AF_UNIX:
      return size > offsetof(sockaddr_un, sun_path) + 1 && size <= sizeof(sockaddr_un) &&
             reinterpret_cast<const sockaddr_un &>(address).sun_path[0] != '\0';
    case AF_VSOCK:
      return size == sizeof(sockaddr_vm);
    default:
      return false;
  }
}

std::string no_socket(int family, int error) {
  if (family != AF_VSOCK) return "socket: " + bh::error_name(error);
  return "this kernel has no AF_VSOCK sockets (" + bh::error_name(error) +
         "): load the module vsock and its transport (vhost_vsock on a host with KVM), or listen "
         "on the Unix socket of the virtual machine's monitor";
}

}  // namespace

Result<OwnedFd> open_listener(std::string_view bytes, std::string_view as_configured,
                              SocketFile file) {
  sockaddr_storage address{};  // zeroed, so that the path of a Unix socket is null-terminated
  if (bytes.size() < sizeof(sa_family_t) || bytes.size() >= sizeof address) {
    return fail(BH_E_INVALID, "invalid socket address");
  }
  std::memcpy(&address, bytes.data(), bytes.size());
  if (!known(address, bytes.size())) return fail(BH_E_INVALID, "invalid socket address");
  const auto size = static_cast<socklen_t>(bytes.size());
  const auto *raw = reinterpret_cast<const sockaddr *>(&address);
  const bool is_unix = address.ss_family == AF_UNIX;
  OwnedFd fd(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail(BH_E_IO, no_socket(address.ss_family, errno));
  const int on = 1;
  if (is_unix) {
    remove_stale(reinterpret_cast<const sockaddr_un &>(address), size);
  } else if (address.ss_family != AF_VSOCK) {
    ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    // Accepted sockets inherit this option, which saves one system call per connection.
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  }
  const mode_t mask = is_unix ? ::umask(file == SocketFile::everybody ? 0111 : 0177) : 0;
  const int bound = ::bind(fd.get(), raw, size);
  const int why = errno;
  if (is_unix) ::umask(mask);
  if (bound != 0) return fail(BH_E_IO, failure(why, as_configured, address));
  if (::listen(fd.get(), backlog) != 0) {
    return fail(BH_E_IO, failure(errno, as_configured, address));
  }
  return fd;
}

void remember_socket_file(std::string_view bytes, std::vector<std::string> *paths) {
  sockaddr_un address{};
  if (bytes.size() > sizeof address) return;
  std::memcpy(&address, bytes.data(), bytes.size());
  if (address.sun_family == AF_UNIX) paths->emplace_back(address.sun_path);
}

}  // namespace bulkhead
