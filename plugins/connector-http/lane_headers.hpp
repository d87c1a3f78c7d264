// Formats the headers of a message as HTTP header lines.
#pragma once

#include <string>

#include "bulkhead/abi/ext/connector.h"

namespace connector_http {

struct LaneHeaders {
  std::string lines;      // each line ends with CRLF
  bool revision = false;  // the lines contain Mcp-Protocol-Version

  bool empty() const noexcept { return lines.empty(); }
};

// Returns BH_E_INVALID if a header is malformed (see bh_header) or if messages are not allowed to
// set it. The error message never contains a header value.
bh_status read_headers(const bh_lane_message &message, LaneHeaders *out, bh_error *error);

}  // namespace connector_http
