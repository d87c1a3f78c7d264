// A server's definition: {"type":"http"|"sse","url":"...","headers":{...}}; other members belong to
// other parts and are left alone.
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
  std::string headers;         // "Name: value\r\n" each, checked; holds credentials
  bool has_user_agent = false;
};

// BH_E_INVALID with a text that names the header, never its value.
bh_status parse_definition(std::string_view json, Definition *out, bh_error *error);

}  // namespace connector_http
