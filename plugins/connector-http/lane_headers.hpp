// Formats a message's headers as lines for the head of its HTTP request.
#pragma once

#include <string>

#include "bulkhead/abi/ext/connector.h"

namespace connector_http {

struct LaneHeaders {
  std::string lines;      // each ends with CRLF
  bool revision = false;  // the lines contain Mcp-Protocol-Version

  bool empty() const noexcept { return lines.empty(); }
};

// Returns BH_E_INVALID for a header that bh_header does not allow, or for a name that messages must
// not set. The error text never contains a value.
bh_status read_headers(const bh_lane_message &message, LaneHeaders *out, bh_error *error);

}  // namespace connector_http
