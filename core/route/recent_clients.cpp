#include "route/recent_clients.hpp"

#include <algorithm>
#include <string_view>

namespace bulkhead {
namespace {

bool is_same(const ClaimedName &a, const ClaimedName &b) noexcept {
  return a == b || text_of(a) == text_of(b);
}

}  // namespace

void RecentClients::add(const Session &request, std::uint64_t now_ns) {
  Client &client = find_or_add(request);
  client.calls += request.calls;
  client.last_ns = now_ns;
}

RecentClients::Client &RecentClients::find_or_add(const Session &request) {
  const auto matches = [&request](const Client &one) {
    return is_same(one.name, request.claimed_name) && one.process_name == request.process_name &&
           one.transport == request.transport;
  };
  if (last_ < clients_.size() && matches(clients_[last_])) return clients_[last_];
  auto at = std::find_if(clients_.begin(), clients_.end(), matches);
  if (at == clients_.end()) {
    if (clients_.size() < max_clients) {
      at = clients_.emplace(at);
    } else {
      at = std::min_element(clients_.begin(), clients_.end(),
                            [](const Client &a, const Client &b) { return a.last_ns < b.last_ns; });
    }
    *at = {request.claimed_name, request.process_name, request.transport, 0, 0};
  }
  last_ = static_cast<std::size_t>(at - clients_.begin());
  return *at;
}

void RecentClients::append_to(std::vector<ClientStatus> *list, std::uint64_t now_ns) const {
  for (const Client &one : clients_) {
    if (list->size() == ClientStatus::max_listed) return;
    if (now_ns - one.last_ns > listed_ns) continue;
    ClientStatus &status = list->emplace_back();
    status.claimed_name = text_of(one.name);
    status.process_name = one.process_name;
    status.transport = one.transport;
    status.protocol = stateless_revision;
    status.calls = one.calls;
  }
}

}  // namespace bulkhead
