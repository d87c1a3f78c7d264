// The headers of a message, as lines for the head of its HTTP request.
#pragma once

#include <string>

#include "bulkhead/abi/ext/connector.h"

namespace connector_http {

struct LaneHeaders {
  std::string lines;      // each ends with CRLF
  bool revision = false;  // Mcp-Protocol-Version is one of them

  bool empty() const noexcept { return lines.empty(); }
};

// Returns BH_E_INVALID for a header that bh_header does not allow, or a name that messages may not
// set. The text never contains a value.
bh_status read_headers(const bh_lane_message &message, LaneHeaders *out, bh_error *error);

}  // namespace connector_http
