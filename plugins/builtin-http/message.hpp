// What is asked of a web server, and what it answered.
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
  std::vector<Header> headers;  // of the caller's; they do not follow to another origin
  std::string body;
  bool head_only = false;   // the body of the answer is not wanted
  bool any_type = false;    // binary content, too
  bool any_status = false;  // also answers that are not 2xx
};

struct Response {
  Url url;  // that answered, behind all redirects
  std::uint32_t status = 0;
  std::vector<Header> headers;
  std::string body;  // decompressed

  // The first header of this name (lower case); empty: there is none.
  std::string_view header(std::string_view name) const;
};

// Do the names of two headers mean the same?
bool same_name(std::string_view a, std::string_view b);

}  // namespace builtin_http
