// The check of Mcp-Param-* headers of a call against its arguments. The call is made with the
// arguments of the body; a client whose headers differ must not be misunderstood by intermediaries.
//
// Used on the I/O thread.
#pragma once

#include <optional>

#include "mcp/mirrored_headers.hpp"
#include "route/message.hpp"
#include "route/target.hpp"

namespace bulkhead {

// Compares the headers of a tools/call with the arguments that the listed definition of its tool
// annotates. Returns nullopt if they match, or if the tool has no valid annotations. The schema of
// an annotated tool is read for each call.
std::optional<mcp::HeaderFault> check_param_headers(const Message &request, const Target &target,
                                                    const WireHeaders &headers);

}  // namespace bulkhead
