// Translates the server definitions of the aggregator protocol to the form that `mcpServers` has in
// a profile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transport_aggregator {

// Commands such as npx and uvx may have to download the server before it can respond. If the server
// were killed during the download, each attempt would start the download again. These commands
// therefore have a separate connect time-out, unless the definition sets one.
struct SlowStarters {
  std::vector<std::string> commands;  // names without a path
  std::uint64_t connect_ms = 0;       // 0 if disabled
};

// Translates `servers`, which must be a valid JSON array, to the array for
// bh_host_control.replace_servers. Removes empty values (null, "", [], {}; but not an empty name)
// and `auth`, converts timeout_secs to timeout, adds connect_timeout to servers with a slow
// command, and skips elements that are not objects. Adds log lines to *notes; they contain the
// names of servers and members, but no other values.
std::string translate_definitions(std::string_view servers, const SlowStarters &slow,
                                  std::vector<std::string> *notes);

}  // namespace transport_aggregator
