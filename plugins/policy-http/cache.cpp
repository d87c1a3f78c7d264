#include "policy-http/cache.hpp"

#include <algorithm>

namespace policy_http {

const Answer *Cache::find(const std::string &key, std::uint64_t now_ns) {
  const auto at = index_.find(key);
  if (at == index_.end()) return nullptr;
  const auto entry = at->second;
  if (entry->until_ns <= now_ns) {
    index_.erase(at);
    entries_.erase(entry);
    return nullptr;
  }
  entries_.splice(entries_.begin(), entries_, entry);
  return &entry->answer;
}

void Cache::keep(const std::string &key, const Answer &answer, std::uint64_t now_ns) {
  const std::uint64_t ttl_ms = std::min(answer.ttl_ms, max_ttl_ms_);
  if (max_entries_ == 0 || ttl_ms == 0 || answer.verdict == BH_VERDICT_REWRITE) return;
  if (const auto old = index_.find(key); old != index_.end()) {
    const auto entry = old->second;
    index_.erase(old);
    entries_.erase(entry);
  }
  if (entries_.size() >= max_entries_) {
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, answer, now_ns + ttl_ms * 1'000'000});
  index_.emplace(entries_.front().key, entries_.begin());
}

}  // namespace policy_http
