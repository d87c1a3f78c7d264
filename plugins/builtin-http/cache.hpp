// An in-memory cache of responses, by URL.
//
// Requests with caller-supplied headers bypass the cache, because a response to a request with
// credentials must not reach other callers. Limits: max_entries and the total size in bytes. A
// response larger than an eighth of this size is not stored. The least recently used entry is
// evicted.
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
    const Response *response = nullptr;  // valid until the next call to this object
    bool is_fresh = false;               // false if it must be revalidated by ETag or date
  };
  Found find(const Url &url, std::uint64_t now_ns);

  // Stores a response to a GET request that was just received, if caching is permitted. Replaces
  // any older response.
  void store(const Url &url, const Response &response, std::uint64_t now_ns, std::time_t now);

  // Updates an entry after revalidation. `not_modified` is the 304 response.
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
