// Finds running gateways by their service sockets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::program {

struct FoundGateway {
  std::string socket;
  int status = 0;      // HTTP status of the response
  std::string answer;  // JSON as received, at most max_answer_bytes
  std::string error;   // the reason why there is no response: busy, or access denied
};

inline constexpr std::size_t max_answer_bytes = 16u << 20;
inline constexpr std::size_t max_answer_head_bytes = 16u << 10;
inline constexpr std::uint64_t status_wait_ms = 2'000;
inline constexpr std::uint64_t reload_wait_ms = 30'000;

// Sends the request to every gateway that listens on a socket in these folders, one after another.
// Removes sockets without a listener. `body` is JSON, or empty.
std::vector<FoundGateway> ask_gateways(const std::vector<std::string> &dirs,
                                       std::string_view method, std::string_view target,
                                       std::uint64_t wait_ms, std::string_view body = {});
// Sends the request to the gateway at this socket. Returns nullopt if no gateway is listening
// there.
std::optional<FoundGateway> ask_gateway(const std::string &socket, std::string_view method,
                                        std::string_view target, std::uint64_t wait_ms,
                                        std::string_view body = {});

}  // namespace bulkhead::program
