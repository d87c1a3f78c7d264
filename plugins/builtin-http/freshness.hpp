// Computes how long a private cache may use a response (RFC 9111).
#pragma once

#include <cstdint>
#include <ctime>
#include <string_view>

#include "builtin-http/message.hpp"

namespace builtin_http {

struct Freshness {
  bool store = false;         // the response may be stored
  std::uint64_t seconds = 0;  // remaining time; if 0, each use requires revalidation
};

// Computes the freshness of a response to a GET request that was received at `now`. Without max-age
// and Expires, the freshness lifetime is 0, because heuristic freshness is not used.
Freshness freshness_of(const Response &response, std::time_t now);

// Converts an HTTP date, such as "Sun, 06 Nov 1994 08:49:37 GMT", to Unix time. Returns -1 if the
// date is invalid.
std::time_t parse_date(std::string_view text);

}  // namespace builtin_http
