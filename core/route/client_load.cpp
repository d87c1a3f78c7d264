#include "route/client_load.hpp"

#include <arpa/inet.h>

#include "bulkhead/cpp/basics.hpp"

namespace bulkhead {
namespace {

constexpr std::string_view loopback = "loopback";

// `address` has the form [IPv6]:port.
std::string group_of_ipv6(std::string_view address) {
  const std::string text(address.substr(1, address.find(']') - 1));
  in6_addr raw{};
  if (::inet_pton(AF_INET6, text.c_str(), &raw) != 1) return std::string(address);
  if (IN6_IS_ADDR_LOOPBACK(&raw)) return std::string(loopback);
  if (IN6_IS_ADDR_V4MAPPED(&raw)) {
    if (raw.s6_addr[12] == 127) return std::string(loopback);
  } else {
    std::fill(raw.s6_addr + 8, raw.s6_addr + 16, std::uint8_t{0});
  }
  char out[INET6_ADDRSTRLEN];
  return ::inet_ntop(AF_INET6, &raw, out, sizeof out);
}

}  // namespace

std::string peer_group(std::string_view address) {
  if (address.starts_with("uid:")) return std::string(address.substr(0, address.find(' ')));
  if (address.starts_with('[')) return group_of_ipv6(address);
  const std::string host(address.substr(0, address.rfind(':')));
  in_addr raw{};
  if (::inet_pton(AF_INET, host.c_str(), &raw) != 1) return std::string(address);
  return ntohl(raw.s_addr) >> 24 == 127 ? std::string(loopback) : host;
}

std::shared_ptr<ClientLoad> ClientLoads::of(const bh_peer &peer, std::uint64_t now_ns,
                                            std::uint64_t idle_ns) {
  Key key{bh::view(peer.transport), bh::view(peer.principal), peer_group(bh::view(peer.address))};
  const auto is_unused = [](const Entry &entry) { return entry.load.use_count() == 1; };
  auto found = loads_.find(key);
  if (found != loads_.end() && is_unused(found->second) &&
      now_ns - found->second.used_ns > idle_ns) {
    loads_.erase(found);
    found = loads_.end();
  }
  if (found == loads_.end()) {
    if (loads_.size() >= max_idle) {
      std::erase_if(loads_, [&](const auto &one) { return is_unused(one.second); });
    }
    found = loads_.emplace(std::move(key), Entry{std::make_shared<ClientLoad>(), now_ns}).first;
    found->second.load->has_session = false;
  }
  found->second.used_ns = now_ns;
  return found->second.load;
}

}  // namespace bulkhead
