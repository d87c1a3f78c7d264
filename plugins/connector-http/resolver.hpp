// Resolves names without blocking the reactor. Literals and localhost are resolved immediately,
// other names by getaddrinfo on the host's pool. The caller caches the result for 30 s.
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

// Maximum number of addresses kept for one name.
constexpr std::size_t addresses_max = 16;

// Sets *out and returns true for an IPv4 or IPv6 literal and for localhost (::1 first, as
// getaddrinfo orders them).
bool resolve_now(const std::string &host, std::uint16_t port, std::vector<Address> *out);

// One name resolution on the pool. `done` is called on the reactor thread, but not after cancel().
// If the name has no address, `done` receives an empty list and the reason. [io]
class Lookup {
 public:
  using Done = std::function<void(std::vector<Address> &&addresses, const std::string &why)>;

  // Returns null if the pool is full.
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
