// The plugin's own HTTP/1.1 client for plain HTTP. It uses non-blocking sockets on the host's
// reactor. A connection carries one request at a time. Idle connections are kept per origin and
// shared by all lanes.
//
// A call usually takes one sendmsg and one recv. The socket stays registered with the reactor, and
// the response is received into a buffer shared by all connections and delivered from there.
//
// Limits: if an origin has connections_max connections, more requests fail with BH_E_LIMIT. At most
// idle_max idle connections are kept per origin, each for about idle_ms. A response head has at
// most header_bytes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backend.hpp"
#include "bulkhead/cpp/host.hpp"
#include "resolver.hpp"

namespace connector_http {

class Connection;  // NOLINT(cppcoreguidelines-virtual-class-destructor): it is final
class Http1Client;

struct Http1Limits {
  std::uint64_t header_bytes = 32 << 10;
  std::uint64_t write_queue_bytes = 1 << 20;
  std::uint32_t connections_max = 1024;
  std::uint32_t idle_max = 128;
  std::uint64_t idle_ms = 60'000;
  std::uint64_t resolve_ms = 30'000;  // resolved addresses are reused for this time
};

// An origin server (host and port) and the connections to it. Owned by the client.
struct Origin {
  std::string host, key;
  std::uint16_t port = 0;
  std::vector<Address> addresses;
  std::uint64_t resolved_ns = 0;
  bool literal = false;  // `host` is an IP address or localhost, so it is never resolved again
  Lookup *lookup = nullptr;
  std::vector<Connection *> waiting;  // connections that wait for the addresses
  std::vector<Connection *> idle;     // the most recently used connection is last
  std::uint32_t open = 0, routes = 0;
};

class Http1Client {
 public:
  static constexpr std::size_t scratch_bytes = 256 << 10;

  Http1Client(const bh::Host &host, const Http1Limits &limits);
  ~Http1Client();
  Http1Client(const Http1Client &) = delete;
  Http1Client &operator=(const Http1Client &) = delete;

  std::unique_ptr<HttpRoute> route(const Url &url, std::uint64_t connect_timeout_ms);
  // Closes all connections. No callbacks are called after this.
  void stop() noexcept;

  // For tests. open() returns the number of connections that are currently open, and connects()
  // returns the number of connections that have ever been opened.
  std::uint32_t open() const noexcept;
  std::uint64_t connects() const noexcept { return connects_; }

 private:
  friend class Connection;
  friend class Http1Route;

  Connection *take_idle(Origin &origin);
  void put_idle(Connection *connection);
  void retire(Connection *connection) noexcept;
  void arm_sweep();
  void sweep();
  bool resolve(Origin &origin);
  static void prefer(Origin &origin, const Address &address);
  void resolved(Origin &origin, std::vector<Address> &&addresses, const std::string &why);
  void release_route(Origin &origin) noexcept;
  void delete_retired() noexcept;

  const bh::Host &host_;
  Http1Limits limits_;
  std::unique_ptr<char[]> scratch_;
  std::map<std::string, std::unique_ptr<Origin>> origins_;
  std::vector<Connection *> all_;
  std::vector<Connection *> retired_;  // freed later, because their callbacks may be on the stack
  bool deletion_pending_ = false;
  bh_timer sweep_timer_ = 0;
  std::uint64_t connects_ = 0;
};

}  // namespace connector_http
