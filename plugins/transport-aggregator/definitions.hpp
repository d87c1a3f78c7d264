// Translates server definitions from the protocol's members to those of mcpServers in a profile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transport_aggregator {

// Commands that may have to download their server before it answers (npx, uvx ...), and the connect
// time-out for their definitions without a time-out. A server that is killed during the download
// would start over each time.
struct SlowStarters {
  std::vector<std::string> commands;  // names without a folder
  std::uint64_t connect_ms = 0;       // 0: disabled
};

// `servers` is a valid JSON array. Returns the array for bh_host_control.replace_servers: absent
// values of the protocol (null, "", [], {}) are removed, and timeout_secs becomes timeout. *notes
// receives lines for the operator; they contain names of servers and members, never values.
std::string translate_definitions(std::string_view servers, const SlowStarters &slow,
                                  std::vector<std::string> *notes);

}  // namespace transport_aggregator
