// An LRU cache of responses, each with a time to live. The key is the digest of the request.
// Responses that rewrite a call or a result are not cached.
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
  // If max_entries is 0, the cache is disabled. max_ttl_ms limits the time to live of each
  // response.
  Cache(std::size_t max_entries, std::uint64_t max_ttl_ms)
      : max_entries_(max_entries), max_ttl_ms_(max_ttl_ms) {}

  // Returns the cached response, or nullptr if there is none or it has expired. The pointer is
  // valid until the next call.
  const Answer *find(const std::string &key, std::uint64_t now_ns);
  void keep(const std::string &key, const Answer &answer, std::uint64_t now_ns);
  std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::string key;
    Answer answer;
    std::uint64_t until_ns = 0;
  };
  using Entries = std::list<Entry>;  // most recently used first

  const std::size_t max_entries_;
  const std::uint64_t max_ttl_ms_;
  Entries entries_;
  std::unordered_map<std::string_view, Entries::iterator> index_;  // keys refer to the entries
};

}  // namespace policy_http
