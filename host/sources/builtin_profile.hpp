// The builtin profile, the lowest layer of every profile.
#pragma once

#include <string_view>

namespace bulkhead::program {

// Connectors, the policy and the services, but no transports or servers. Without rules, the policy
// allows everything and is not called. The same policy is used with rules, so that a reload can
// apply the first rules.
extern const std::string_view builtin_base;
// The transports of `serve` and `stdio`.
extern const std::string_view builtin_http_transport;
extern const std::string_view builtin_stdio_transport;
extern const std::string_view builtin_stdio_limits;
// For `aggregator`: its transport, and the names and time limits that its protocol specifies.
extern const std::string_view builtin_aggregator;
// Two servers that work without configuration; the second reads the current folder.
extern const std::string_view builtin_web_tools, builtin_file_tools;

}  // namespace bulkhead::program
