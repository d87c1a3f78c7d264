// The lowest layer of every profile: what the program brings along.
#pragma once

#include <string_view>

namespace bulkhead::program {

// Connectors, the policy, which without rules allows everything and is not asked, and the services;
// no transport, no server. It is the same policy with and without rules, so that a reload puts the
// first rules in force.
extern const std::string_view builtin_base;
// One transport, for `serve` and for `stdio`.
extern const std::string_view builtin_http_transport;
extern const std::string_view builtin_stdio_transport;
extern const std::string_view builtin_stdio_limits;
// For `aggregator`: its transport, and what its protocol promises about names and times.
extern const std::string_view builtin_aggregator;
// Two servers that are useful without any configuration; the second reads the current folder.
extern const std::string_view builtin_web_tools, builtin_file_tools;

}  // namespace bulkhead::program
