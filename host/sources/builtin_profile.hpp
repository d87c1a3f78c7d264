// The builtin profile, the lowest layer of every profile.
#pragma once

#include <string_view>

namespace bulkhead::program {

// Connectors, the policy and the services, but no transports or servers. The policy allows all
// calls and is not called as long as there are no rules. It is loaded anyway so that a reload can
// add the first rules.
extern const std::string_view builtin_base;
// The transports of `serve` and `stdio`.
extern const std::string_view builtin_http_transport;
extern const std::string_view builtin_stdio_transport;
extern const std::string_view builtin_stdio_limits;
// For `aggregator`: its transport, and the names and time limits of its protocol.
extern const std::string_view builtin_aggregator;
// Two servers that work without configuration; the second reads the current folder.
extern const std::string_view builtin_web_tools, builtin_file_tools;

}  // namespace bulkhead::program
