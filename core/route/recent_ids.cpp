#include "route/recent_ids.hpp"

namespace bulkhead {

void RecentIds::add(std::string_view id, std::uint64_t now_ns) {
  if (!id.empty()) add_key(key_of(id), now_ns);
}

void RecentIds::add_key(std::uint64_t key, std::uint64_t now_ns) {
  if (max_ == 0) return;
  while (order_.size() >= max_) {
    const auto &[oldest, since] = order_.front();
    // If the id has been added again, it must stay in the set until its newer entry is removed.
    if (const auto at = since_.find(oldest); at != since_.end() && at->second == since) {
      since_.erase(at);
    }
    order_.pop_front();
  }
  since_.insert_or_assign(key, now_ns);
  order_.emplace_back(key, now_ns);
}

bool RecentIds::holds(std::string_view id, std::uint64_t now_ns, std::uint64_t age_ns) const {
  const auto at = since_.find(key_of(id));
  return at != since_.end() && now_ns - at->second < age_ns;
}

}  // namespace bulkhead
