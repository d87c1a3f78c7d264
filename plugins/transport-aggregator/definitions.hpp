// Translates the server definitions of the aggregator protocol to the form of `mcpServers` in a
// profile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace transport_aggregator {

// Commands such as npx and uvx, which may download the server before it can respond, and their
// connect time-out. It applies to definitions without a time-out. If the server were killed during
// the download, each attempt would start the download again.
struct SlowStarters {
  std::vector<std::string> commands;  // names without a path
  std::uint64_t connect_ms = 0;       // 0 if disabled
};

// `servers` is a valid JSON array. Returns the array for bh_host_control.replace_servers: empty
// values (null, "", [], {}) are removed, and timeout_secs becomes timeout. *notes receives log
// lines, which contain names of servers and members, but no values.
std::string translate_definitions(std::string_view servers, const SlowStarters &slow,
                                  std::vector<std::string> *notes);

}  // namespace transport_aggregator
