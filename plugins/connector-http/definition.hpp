// A server's definition: {"type":"http"|"sse","url":"...","headers":{...}}. Members for other
// components are ignored.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bulkhead/abi/core.h"
#include "url.hpp"

namespace connector_http {

struct Definition {
  Url url;
  bool http_sse_only = false;  // "sse"
  std::string headers;         // "Name: value\r\n" lines, validated; contain credentials
  bool has_user_agent = false;
};

// On failure, returns BH_E_INVALID and a text with the header's name, but never its value.
bh_status parse_definition(std::string_view json, Definition *out, bh_error *error);

}  // namespace connector_http
