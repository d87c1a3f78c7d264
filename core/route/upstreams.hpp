// The servers from the profile, in profile order. Owner: the Router. Used on the reactor thread.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "route/upstream.hpp"

namespace bulkhead {

class Upstreams {
 public:
  using List = std::vector<std::unique_ptr<Upstream>>;

  const List &all() const noexcept { return list_; }
  void add(std::unique_ptr<Upstream> upstream) { list_.push_back(std::move(upstream)); }
  // Removes and returns all servers, so that a new list can be built from them.
  List take_all() noexcept { return std::exchange(list_, {}); }

  // Returns null if the profile has no server with this name.
  const Upstream *find(std::string_view name) const noexcept {
    const auto at = std::find_if(list_.begin(), list_.end(),
                                 [name](const auto &one) { return one->name() == name; });
    return at == list_.end() ? nullptr : at->get();
  }
  // Returns true if a client with these capabilities has its own connection to some server.
  bool any_own_lane(ClientCaps caps, std::uint64_t key) const noexcept {
    return std::any_of(list_.begin(), list_.end(),
                       [=](const auto &one) { return one->has_own_lane(caps, key); });
  }

 private:
  List list_;
};

}  // namespace bulkhead
