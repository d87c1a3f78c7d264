// Parses the argument "headers" of the tools that send requests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builtin-http/message.hpp"

namespace builtin_http {

inline constexpr std::size_t max_request_headers = 64;

// arguments: a JSON object with an object "headers". False: *problem is a sentence without values,
// which may be credentials. Names and values that are invalid in HTTP, and those that the HTTP
// client sets itself, are rejected when the request is sent.
bool read_headers(std::string_view arguments, std::vector<Header> *out, std::string *problem);

}  // namespace builtin_http
