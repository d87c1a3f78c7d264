// Parses a server's sandbox settings and the values in its definition that may name paths.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

struct ChildPolicy {
  enum class Mode : std::uint8_t { strict, home_read_only, off };
  Mode mode = Mode::home_read_only;
  std::vector<std::string> read, write;  // absolute paths
  bool network = true;
  std::uint64_t memory_bytes = 0;  // 0: no limit
  std::uint64_t processes = 1024;
  std::uint64_t cache_bytes = 0;  // 0: no limit
  bool host_ipc = false;
  // The server may be granted access to paths that appear in these values.
  std::string command, cwd;
  std::string home;  // HOME in the environment that the definition sets; empty if unset
  std::vector<std::string> args, env_values;
};

// Parses a server's definition, the JSON object in bh_lane_info. If it has no "sandbox" member, the
// defaults apply. On error, returns BH_E_INVALID; the message names the server and the member but
// contains no values.
Result<ChildPolicy> parse_child_policy(std::string_view server, std::string_view definition);

}  // namespace bulkhead
