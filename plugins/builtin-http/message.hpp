// A request to a web server, and the response.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-http/url.hpp"

namespace builtin_http {

struct Header {
  std::string name, value;
};

struct Request {
  std::string method = "GET";
  Url url;
  std::vector<Header> headers;  // set by the caller; not sent to other origins
  std::string body;
  bool head_only = false;   // do not read the body of the response
  bool any_type = false;    // accept binary content
  bool any_status = false;  // accept a status other than 2xx
};

struct Response {
  Url url;  // URL after all redirects
  std::uint32_t status = 0;
  std::vector<Header> headers;
  std::string body;  // decompressed

  // Returns the value of the first header with this lower-case name, or an empty string if it is
  // absent.
  std::string_view header(std::string_view name) const;
};

// Compares header names case-insensitively.
bool same_name(std::string_view a, std::string_view b);

}  // namespace builtin_http
