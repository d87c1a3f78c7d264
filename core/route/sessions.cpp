#include "route/sessions.hpp"

#include <sys/random.h>

#include <utility>

#include "bulkhead/cpp/basics.hpp"

namespace bulkhead {

std::uint32_t random_generation(std::uint64_t otherwise) {
  std::uint32_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    number = static_cast<std::uint32_t>(otherwise >> 7);
  return (number & 0xFFFFE) | 1;
}

Session &Sessions::open(ClientEnd &end, const bh_peer &peer, std::uint64_t now_ns,
                        std::shared_ptr<ClientLoad> load) {
  auto session = std::make_unique<Session>();
  Session &s = *session;
  s.end = &end;
  s.load = load != nullptr ? std::move(load) : std::make_shared<ClientLoad>();
  s.start_ns = now_ns;
  s.transport = bh::view(peer.transport);
  s.address = bh::view(peer.address);
  s.principal = bh::view(peer.principal);
  s.process_name = bh::view(peer.process_name);
  s.handshake_optional = (peer.flags & BH_PEER_HANDSHAKE_OPTIONAL) != 0;
  s.answers_only = (peer.flags & BH_PEER_ANSWERS_ONLY) != 0;
  if (BH_HAS(bh_peer, &peer, max_message_bytes)) s.max_message_bytes = peer.max_message_bytes;
  s.handle = table_.insert(std::move(session));
  if (s.load->client == 0) {
    s.load->client = s.handle;
    s.load->since_ns = now_ns;
  }
  return s;
}

Session *Sessions::find(bh_session handle) noexcept {
  auto *slot = table_.get(handle);
  return slot == nullptr ? nullptr : slot->get();
}

std::vector<bh_session> Sessions::handles() const {
  std::vector<bh_session> out;
  out.reserve(table_.size());
  table_.for_each(
      [&](bh_session handle, const std::unique_ptr<Session> &) { out.push_back(handle); });
  return out;
}

}  // namespace bulkhead
