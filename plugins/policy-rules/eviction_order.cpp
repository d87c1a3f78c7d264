#include "eviction_order.hpp"

#include <iterator>

namespace bulkhead::rules {

EvictionOrder::Place EvictionOrder::add(std::string_view principal, const std::string &key) {
  const auto at = groups_.try_emplace(std::string(principal)).first;
  Group &group = at->second;
  group.principal = at->first;
  by_size_.erase({group.keys.size(), group.principal});
  group.keys.push_back(&key);
  by_size_.insert({group.keys.size(), group.principal});
  ++size_;
  return {&group, std::prev(group.keys.end())};
}

void EvictionOrder::use(const Place &place) {
  Keys &keys = place.group->keys;
  keys.splice(keys.end(), keys, place.at);
}

void EvictionOrder::remove(const Place &place) {
  Group &group = *place.group;
  by_size_.erase({group.keys.size(), group.principal});
  group.keys.erase(place.at);
  --size_;
  if (group.keys.empty()) {
    groups_.erase(groups_.find(group.principal));
  } else {
    by_size_.insert({group.keys.size(), group.principal});
  }
}

const std::string *EvictionOrder::next() const {
  if (by_size_.empty()) return nullptr;
  return groups_.find(by_size_.rbegin()->second)->second.keys.front();
}

}  // namespace bulkhead::rules
