// What a server's definition says about its sandbox, and which paths it was given by name.
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
  std::uint64_t memory_bytes = 0;  // 0: no bound
  std::uint64_t processes = 1024;
  std::uint64_t cache_bytes = 0;  // 0: no bound
  bool host_ipc = false;
  // Of the definition itself: what a person wrote there may be meant for the server's use.
  std::string command, cwd;
  std::string home;  // HOME in its environment; empty: not set there
  std::vector<std::string> args, env_values;
};

// Reads the JSON object of bh_lane_info. Without a member "sandbox" the defaults hold. BH_E_INVALID
// with a text that names server and member, no value.
Result<ChildPolicy> parse_child_policy(std::string_view server, std::string_view definition);

}  // namespace bulkhead
