// Parses the "headers" argument of the tools that send requests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builtin-http/message.hpp"

namespace builtin_http {

inline constexpr std::size_t max_request_headers = 64;

// Reads the object "headers" from the JSON object `arguments`. On failure, returns false and sets
// *problem to an error message. The message contains no header values because they may be
// credentials. Headers that are invalid or reserved for the HTTP client are rejected later, when
// the request is sent.
bool read_headers(std::string_view arguments, std::vector<Header> *out, std::string *problem);

}  // namespace builtin_http
