#include "plugin/dial_rules.hpp"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>

#include "plugin/text.hpp"

namespace bulkhead {
namespace {

bool is_local(const sockaddr_storage &address, std::size_t size) {
  switch (address.ss_family) {
    case AF_INET: {
      const auto &v4 = reinterpret_cast<const sockaddr_in &>(address);
      return size == sizeof v4 && ntohl(v4.sin_addr.s_addr) >> 24 == 127;
    }
    case AF_INET6: {
      const auto &v6 = reinterpret_cast<const sockaddr_in6 &>(address);
      return size == sizeof v6 && IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
    }
    case AF_UNIX:
      return size > offsetof(sockaddr_un, sun_path) + 1 && size <= sizeof(sockaddr_un) &&
             reinterpret_cast<const sockaddr_un &>(address).sun_path[0] != '\0';
    default:
      return false;
  }
}

}  // namespace

Result<void> DialRules::announce(std::string_view bytes) {
  sockaddr_storage address{};
  if (bytes.size() >= sizeof(sa_family_t) && bytes.size() < sizeof address) {
    std::memcpy(&address, bytes.data(), bytes.size());
  }
  if (!is_local(address, bytes.size())) {
    return fail(BH_E_INVALID, "the address is neither a Unix socket nor a loopback address");
  }
  if (announced_.size() >= max_addresses && !announced_.contains(bytes)) {
    return fail(BH_E_LIMIT, "too many addresses to connect to");
  }
  announced_.emplace(bytes);
  return {};
}

Result<OwnedFd> DialRules::dial(std::string_view bytes) const {
  if (!announced_.contains(bytes)) return fail(BH_E_DENIED, "the address was not announced");
  sockaddr_storage address{};
  std::memcpy(&address, bytes.data(), bytes.size());
  OwnedFd fd(::socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return fail(BH_E_IO, "cannot create a socket: " + bh::error_name(errno));
  const auto size = static_cast<socklen_t>(bytes.size());
  const int result = ::connect(fd.get(), reinterpret_cast<const sockaddr *>(&address), size);
  if (result != 0 && errno != EINPROGRESS) {
    return fail(BH_E_UNAVAILABLE, "cannot connect: " + bh::error_name(errno));
  }
  return fd;
}

}  // namespace bulkhead
