// The headers that a message brings along, as lines for the head of its request.
#pragma once

#include <string>

#include "bulkhead/abi/ext/connector.h"

namespace connector_http {

struct LaneHeaders {
  std::string lines;      // each ended by CRLF
  bool revision = false;  // Mcp-Protocol-Version is one of them

  bool empty() const noexcept { return lines.empty(); }
};

// Refused with BH_E_INVALID: what bh_header does not allow, and names that no message may set. The
// text never holds a value.
bh_status read_headers(const bh_lane_message &message, LaneHeaders *out, bh_error *error);

}  // namespace connector_http
