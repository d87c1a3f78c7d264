// The sandbox settings in a server's definition, and the paths that the definition names.
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
  std::vector<std::string> read, write;  // absolute
  bool network = true;
  std::uint64_t memory_bytes = 0;  // 0: no limit
  std::uint64_t processes = 1024;
  std::uint64_t cache_bytes = 0;  // 0: no limit
  bool host_ipc = false;
  // Values in the definition. The server may be granted access to paths that appear in them.
  std::string command, cwd;
  std::string home;  // HOME in the configured environment, or empty
  std::vector<std::string> args, env_values;
};

// Parses the JSON object of bh_lane_info. Without a "sandbox" member, the defaults apply. On error,
// returns BH_E_INVALID with a message that names the server and the member but contains no value.
Result<ChildPolicy> parse_child_policy(std::string_view server, std::string_view definition);

}  // namespace bulkhead
