// Answers that hold for a while, by the digest of what was asked. Bounded: the one that was not
// used for longest goes. Rewrites are not kept.
#pragma once

#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "policy-http/answer.hpp"

namespace policy_http {

class Cache {
 public:
  // max_entries 0: nothing is kept. max_ttl_ms: however long an answer says that it holds.
  Cache(std::size_t max_entries, std::uint64_t max_ttl_ms)
      : max_entries_(max_entries), max_ttl_ms_(max_ttl_ms) {}

  // Null: there is none that still holds. Valid until the next call.
  const Answer *find(const std::string &key, std::uint64_t now_ns);
  void keep(const std::string &key, const Answer &answer, std::uint64_t now_ns);
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::string key;
    Answer answer;
    std::uint64_t until_ns = 0;
  };
  using Entries = std::list<Entry>;  // the one used last first

  const std::size_t max_entries_;
  const std::uint64_t max_ttl_ms_;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> index_;  // keys are the entries'
};

}  // namespace policy_http
