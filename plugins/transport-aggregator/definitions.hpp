// Server definitions: from the protocol's members to those of a profile's mcpServers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace transport_aggregator {

// `servers` is a valid JSON array. Returns the array for bh_host_control.replace_servers: what
// stands for "not given" in the protocol (null, "", [], {}) is left out, timeout_secs becomes
// timeout. *notes gets lines for the operator; they hold names of servers and members, never a
// value.
std::string translate_definitions(std::string_view servers, std::vector<std::string> *notes);

}  // namespace transport_aggregator
