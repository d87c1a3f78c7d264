// Freshness of responses in a private cache, according to RFC 9111.
#pragma once

#include <cstdint>
#include <ctime>
#include <string_view>

#include "builtin-http/message.hpp"

namespace builtin_http {

struct Freshness {
  bool store = false;         // may be stored
  std::uint64_t seconds = 0;  // from now; 0 requires revalidation before each use
};

// `response` is a response to a GET request that was just received. There is no heuristic
// freshness: without max-age and Expires, the lifetime is 0.
Freshness freshness_of(const Response &response, std::time_t now);

// Parses an HTTP date ("Sun, 06 Nov 1994 08:49:37 GMT") to seconds since 1970. Returns -1 if the
// date is invalid.
std::time_t parse_date(std::string_view text);

}  // namespace builtin_http
