// Freshness of responses: the rules of RFC 9111 for a private cache.
#pragma once

#include <cstdint>
#include <ctime>
#include <string_view>

#include "builtin-http/message.hpp"

namespace builtin_http {

struct Freshness {
  bool store = false;         // may be stored
  std::uint64_t seconds = 0;  // from now; 0: revalidate before each use
};

// For a response to GET that was just received. There is no heuristic freshness: without max-age
// and Expires it is 0.
Freshness freshness_of(const Response &response, std::time_t now);

// Parses an HTTP date ("Sun, 06 Nov 1994 08:49:37 GMT") to seconds since 1970; -1: invalid.
std::time_t parse_date(std::string_view text);

}  // namespace builtin_http
