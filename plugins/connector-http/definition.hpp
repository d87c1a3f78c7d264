// A server's definition: {"type":"http"|"sse","url":"...","headers":{...}}; members for other parts
// are ignored.
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
  std::string headers;         // "Name: value\r\n" each, validated; contains credentials
  bool has_user_agent = false;
};

// Returns BH_E_INVALID with a text that contains the header's name, never its value.
bh_status parse_definition(std::string_view json, Definition *out, bh_error *error);

}  // namespace connector_http
