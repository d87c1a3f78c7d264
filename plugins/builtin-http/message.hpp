// Defines HTTP requests and responses.
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
  std::vector<Header> headers;  // set by the caller; not sent to another origin after a redirect
  std::string body;
  bool head_only = false;   // do not read the response body
  bool any_type = false;    // accept binary content
  bool any_status = false;  // accept any status, not only 2xx
};

struct Response {
  Url url;  // the last URL after redirects
  std::uint32_t status = 0;
  std::vector<Header> headers;
  std::string body;  // decompressed

  // Returns the value of the first header with this name, ignoring case, or an empty string if
  // there is none.
  std::string_view header(std::string_view name) const;
};

// Compares header names, ignoring case.
bool same_name(std::string_view a, std::string_view b);

}  // namespace builtin_http
