// Responses that may be used again, by their URLs: small, in memory, gone with the plugin.
//
// Only of requests without headers of a caller: what somebody got with a credential nobody else
// sees. Bounds: bytes in all (a response of more than an eighth is not kept), max_entries; the one
// that was not used for longest goes.
//
// Thread: the reactor's.
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

  // May this request be answered from here?
  static bool is_for(const Request &request);

  struct Found {
    const Response *response = nullptr;  // valid until the next call of this object
    bool is_fresh = false;               // else the server must be asked, by its ETag or date
  };
  Found find(const Url &url, std::uint64_t now_ns);

  // Keeps a response to GET that came now, in place of an older one, if that is allowed.
  void store(const Url &url, const Response &response, std::uint64_t now_ns, std::time_t now);

  // The server has said that what is kept is still the same (304, with these headers).
  void renew(const Url &url, const Response &not_modified, std::uint64_t now_ns, std::time_t now);

 private:
  struct Entry {
    std::string url;
    Response response;
    std::uint64_t fresh_until_ns;
    std::size_t bytes;
  };
  using Entries = std::list<Entry>;  // the one used last first

  Entries::iterator entry_of(const Url &url);
  void drop(Entries::iterator entry);

  const std::uint64_t max_bytes_;
  std::uint64_t bytes_ = 0;
  Entries entries_;
};

}  // namespace builtin_http
