// Caches HTTP responses in memory, by URL.
//
// Requests with headers from the caller bypass the cache, because a response to a request with
// credentials must not be returned to other callers.
//
// The number of entries is limited to max_entries, and their total size in bytes is limited as
// well. If a limit is exceeded, the least recently used entries are evicted. A response that is
// larger than an eighth of the total size limit is not stored.
//
// Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <ctime>
#include <list>
#include <string>

#include "builtin-http/message.hpp"

namespace builtin_http {

class Cache {
 public:
  static constexpr std::size_t max_entries = 64;

  explicit Cache(std::uint64_t bytes) : max_bytes_(bytes) {}

  // Returns true if the request may use the cache.
  static bool is_for(const Request &request);

  struct Found {
    const Response *response = nullptr;  // valid until the next call of a member function
    bool is_fresh = false;               // if false, the response must be revalidated
  };
  Found find(const Url &url, std::uint64_t now_ns);

  // Stores a new response to a GET request if caching is permitted. Always removes an older
  // response for the same URL.
  void store(const Url &url, const Response &response, std::uint64_t now_ns, std::time_t now);

  // Updates an entry that has been revalidated. `not_modified` is the 304 response.
  void renew(const Url &url, const Response &not_modified, std::uint64_t now_ns, std::time_t now);

 private:
  struct Entry {
    std::string url;
    Response response;
    std::uint64_t fresh_until_ns;
    std::size_t bytes;
  };
  using Entries = std::list<Entry>;  // most recently used first

  Entries::iterator entry_of(const Url &url);
  void drop(Entries::iterator entry);

  const std::uint64_t max_bytes_;
  std::uint64_t bytes_ = 0;
  Entries entries_;
};

}  // namespace builtin_http
