// The builtin profile, which is the lowest layer of every profile.
#pragma once

#include <string_view>

namespace bulkhead::program {

// Connectors, services and the policy, but no transports or servers. As long as the policy has no
// rules, it is not called. It is loaded anyway, so that a reload can add the first rules.
extern const std::string_view builtin_base;
// The transports of `bulkhead serve` and `bulkhead stdio`.
extern const std::string_view builtin_http_transport;
inline constexpr std::string_view default_listen = "127.0.0.1:8808";  // of builtin_http_transport
extern const std::string_view builtin_stdio_transport;
extern const std::string_view builtin_stdio_limits;
// The transport of `bulkhead aggregator`, and the naming scheme and time limits that its protocol
// requires.
extern const std::string_view builtin_aggregator;
// Tools that require no configuration. The file tools access the working directory.
extern const std::string_view builtin_web_tools, builtin_file_tools;

}  // namespace bulkhead::program
