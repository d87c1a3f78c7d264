// Parses a server definition: {"type":"http"|"sse","url":"...","headers":{...}}. The default type
// is "http"; "streamable-http" and "streamableHttp" mean the same. Other members are ignored
// because other components read them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "bulkhead/abi/core.h"
#include "url.hpp"

namespace connector_http {

struct Definition {
  Url url;
  bool http_sse_only = false;  // the type is "sse"
  std::string headers;         // validated "Name: value\r\n" lines; may contain credentials
  bool has_user_agent = false;
};

// Returns BH_E_INVALID if the definition is invalid. The error message may contain a header name,
// but never a header value.
bh_status parse_definition(std::string_view json, Definition *out, bh_error *error);

}  // namespace connector_http
