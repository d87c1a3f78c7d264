// Finds running gateways by their control sockets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::program {

struct FoundGateway {
  std::string socket;
  int status = 0;      // of the answer
  std::string answer;  // JSON as it came, at most max_answer_bytes
  std::string error;   // why there is none: it is busy, or not ours to ask
};

inline constexpr std::size_t max_answer_bytes = 16u << 20;
inline constexpr std::size_t max_answer_head_bytes = 16u << 10;
inline constexpr std::uint64_t status_wait_ms = 2'000;
inline constexpr std::uint64_t reload_wait_ms = 30'000;

// Asks all that listen in these folders, one after the other. Sockets that nobody listens on any
// more are removed. `body`: JSON, or nothing.
std::vector<FoundGateway> ask_gateways(const std::vector<std::string> &dirs,
                                       std::string_view method, std::string_view target,
                                       std::uint64_t wait_ms, std::string_view body = {});
// The one behind this socket; nothing: nobody listens there any more.
std::optional<FoundGateway> ask_gateway(const std::string &socket, std::string_view method,
                                        std::string_view target, std::uint64_t wait_ms,
                                        std::string_view body = {});

}  // namespace bulkhead::program
