// Finds running gateways by their control sockets.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bulkhead::program {

struct FoundGateway {
  std::string socket;
  std::string snapshot;  // JSON as it came, at most max_snapshot_bytes
  std::string error;     // why there is none: it is busy, or not ours to ask
};

inline constexpr std::size_t max_snapshot_bytes = 16u << 20;
inline constexpr std::uint64_t snapshot_wait_ms = 2'000;

// All that listen in these folders. Sockets that nobody listens on any more are removed.
std::vector<FoundGateway> find_gateways(const std::vector<std::string> &dirs);

}  // namespace bulkhead::program
