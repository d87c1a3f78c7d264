// Translates server definitions of the protocol to the members of mcpServers in a profile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transport_aggregator {

// Commands that may download their server before it answers (npx, uvx ...), and the connect
// time-out for definitions that use these commands and set no time-out. If a server were killed
// during the download, each attempt would start the download again.
struct SlowStarters {
  std::vector<std::string> commands;  // names without a folder
  std::uint64_t connect_ms = 0;       // 0 if disabled
};

// `servers` is a valid JSON array. Returns the array for bh_host_control.replace_servers, without
// the protocol's empty values (null, "", [], {}), and with timeout instead of timeout_secs. *notes
// receives lines for the operator. They contain names of servers and members, but no values.
std::string translate_definitions(std::string_view servers, const SlowStarters &slow,
                                  std::vector<std::string> *notes);

}  // namespace transport_aggregator
