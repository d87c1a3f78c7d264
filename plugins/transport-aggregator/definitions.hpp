// Server definitions: from the protocol's members to those of a profile's mcpServers.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transport_aggregator {

// Commands that may have to download their server before it can answer (npx, uvx ...), and the time
// to connect that they get when their definition has none: killed half-way, they would start over
// for ever.
struct SlowStarters {
  std::vector<std::string> commands;  // names without a folder
  std::uint64_t connect_ms = 0;       // 0: there are none
};

// `servers` is a valid JSON array. Returns the array for bh_host_control.replace_servers: what
// stands for "not given" in the protocol (null, "", [], {}) is left out, timeout_secs becomes
// timeout. *notes gets lines for the operator; they hold names of servers and members, never a
// value.
std::string translate_definitions(std::string_view servers, const SlowStarters &slow,
                                  std::vector<std::string> *notes);

}  // namespace transport_aggregator
