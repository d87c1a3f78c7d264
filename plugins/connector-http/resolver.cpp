#include "resolver.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>

#include <cstring>
#include <memory>

namespace connector_http {
namespace {

bool add_v4(const char *text, std::uint16_t port, std::vector<Address> *out) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  in.sin_port = htons(port);
  if (inet_pton(AF_INET, text, &in.sin_addr) != 1) return false;
  Address &a = out->emplace_back();
  std::memcpy(&a.storage, &in, sizeof in);
  a.size = sizeof in;
  return true;
}

bool add_v6(const char *text, std::uint16_t port, std::vector<Address> *out) {
  sockaddr_in6 in{};
  in.sin6_family = AF_INET6;
  in.sin6_port = htons(port);
  if (inet_pton(AF_INET6, text, &in.sin6_addr) != 1) return false;
  Address &a = out->emplace_back();
  std::memcpy(&a.storage, &in, sizeof in);
  a.size = sizeof in;
  return true;
}

}  // namespace

bool resolve_now(const std::string &host, std::uint16_t port, std::vector<Address> *out) {
  out->clear();
  if (host == "localhost" || host.ends_with(".localhost")) {  // loopback according to RFC 6761
    return add_v6("::1", port, out) && add_v4("127.0.0.1", port, out);
  }
  return add_v4(host.c_str(), port, out) || add_v6(host.c_str(), port, out);
}

Lookup *Lookup::start(const bh::Host &host, std::string name, std::uint16_t port, Done done) {
  auto lookup = std::make_unique<Lookup>();
  lookup->name_ = std::move(name);
  lookup->port_ = port;
  lookup->done_ = std::move(done);
  const auto job = bh::blocking_work<&Lookup::work, &Lookup::finish>(lookup.get());
  if (host.run_blocking(job) != BH_OK) return nullptr;
  return lookup.release();  // finish() runs exactly once and deletes the lookup
}

void Lookup::work() {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV;
  addrinfo *list = nullptr;
  const std::string port = std::to_string(port_);
  const int rc = getaddrinfo(name_.c_str(), port.c_str(), &hints, &list);
  if (rc != 0) {
    why_ = gai_strerror(rc);
    return;
  }
  for (addrinfo *i = list; i != nullptr && addresses_.size() < addresses_max; i = i->ai_next) {
    if (i->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Address &a = addresses_.emplace_back();
    std::memcpy(&a.storage, i->ai_addr, i->ai_addrlen);
    a.size = i->ai_addrlen;
  }
  freeaddrinfo(list);
}

void Lookup::finish() {
  const std::unique_ptr<Lookup> self(this);
  if (done_) done_(std::move(addresses_), why_);
}

}  // namespace connector_http
