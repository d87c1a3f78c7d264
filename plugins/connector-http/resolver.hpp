// Resolves names without blocking the reactor: literals and localhost immediately, other names by
// getaddrinfo on the host's pool. The caller caches the result for 30 s.
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bulkhead/cpp/host.hpp"

namespace connector_http {

struct Address {
  sockaddr_storage storage{};
  socklen_t size = 0;
};

// At most 16 addresses of one name are kept.
constexpr std::size_t addresses_max = 16;

// Fills *out for an IPv4 or IPv6 literal or localhost (::1 first, in getaddrinfo's order).
bool resolve_now(const std::string &host, std::uint16_t port, std::vector<Address> *out);

// One resolution on the pool. `done` is called on the reactor thread, but not after cancel(). If
// the name has no address, it gets an empty list and a reason. [io]
class Lookup {
 public:
  using Done = std::function<void(std::vector<Address> &&addresses, const std::string &why)>;

  // Null if the pool is full.
  static Lookup *start(const bh::Host &host, std::string name, std::uint16_t port, Done done);
  void cancel() noexcept { done_ = nullptr; }

 private:
  void work();
  void finish();

  std::string name_, why_;
  std::uint16_t port_ = 0;
  std::vector<Address> addresses_;
  Done done_;
};

}  // namespace connector_http
