// Checks the Mcp-Param-* headers of a tools/call against its arguments. The gateway uses the
// arguments in the body. Intermediaries may act on the headers, so a mismatch between headers and
// body must be rejected.
//
// Used on the reactor thread.
#pragma once

#include <optional>

#include "mcp/mirrored_headers.hpp"
#include "route/message.hpp"
#include "route/target.hpp"

namespace bulkhead {

// Compares the headers with the arguments that the tool's listed definition maps to headers.
// Returns nullopt if they match, if the request is not a tools/call, if the tool is not listed, or
// if its definition has no valid header annotations. If the tool has annotations, its input schema
// is parsed for every call.
std::optional<mcp::HeaderFault> check_param_headers(const Message &request, const Target &target,
                                                    const WireHeaders &headers);

}  // namespace bulkhead
