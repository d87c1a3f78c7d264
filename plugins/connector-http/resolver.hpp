// Resolves host names without blocking the reactor. IP addresses and localhost are resolved
// immediately. All other names are resolved with getaddrinfo() on the host's thread pool. The
// caller caches the result for 30 seconds.
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

// Maximum number of addresses per name.
constexpr std::size_t addresses_max = 16;

// Resolves an IP address, localhost or *.localhost. For localhost, ::1 comes first, as in
// getaddrinfo(). Returns false for other names.
bool resolve_now(const std::string &host, std::uint16_t port, std::vector<Address> *out);

// A lookup of one name on the thread pool. Calls `done` on the reactor thread unless cancel() was
// called. If the lookup fails, `done` receives no addresses, and `why` contains the reason.
class Lookup {
 public:
  using Done = std::function<void(std::vector<Address> &&addresses, const std::string &why)>;

  // Returns null if the thread pool is full.
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
