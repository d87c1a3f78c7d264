// How long a response may be used again: the rules of RFC 9111 for a private cache.
#pragma once

#include <cstdint>
#include <ctime>
#include <string_view>

#include "builtin-http/message.hpp"

namespace builtin_http {

struct Freshness {
  bool store = false;         // else it must not be kept
  std::uint64_t seconds = 0;  // from now; 0: it must be asked for again, by its validator
};

// Of a response to GET that came now. No time is guessed: without Cache-Control's max-age and
// Expires it is 0.
Freshness freshness_of(const Response &response, std::time_t now);

// The seconds since 1970 of an HTTP date ("Sun, 06 Nov 1994 08:49:37 GMT"); -1: it is none.
std::time_t parse_date(std::string_view text);

}  // namespace builtin_http
