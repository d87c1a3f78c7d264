// The argument "headers" of the tools that send requests.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "builtin-http/message.hpp"

namespace builtin_http {

inline constexpr std::size_t max_request_headers = 64;

// arguments: the call's, a JSON object with an object "headers". False: *problem is a sentence; it
// names no value, which may be a credential. Names and values that HTTP does not allow, and those
// that the HTTP client writes itself, are refused when the request is sent.
bool read_headers(std::string_view arguments, std::vector<Header> *out, std::string *problem);

}  // namespace builtin_http
