// Finds running gateways through their service sockets and sends requests to them.
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
  std::string answer;  // body of the response (JSON), at most max_answer_bytes
  std::string error;   // why there is no response; empty if there is one
};

// Returns the name of a gateway in messages: "gateway with pid N", or the path of its socket if
// the path does not contain a process ID.
std::string gateway_name(std::string_view socket);

inline constexpr std::size_t max_answer_bytes = 16u << 20;
inline constexpr std::size_t max_answer_head_bytes = 16u << 10;
inline constexpr std::uint64_t status_wait_ms = 2'000;
inline constexpr std::uint64_t reload_wait_ms = 30'000;

// Sends a request to each gateway whose socket is in one of these directories. The gateways are
// contacted one after another, and each may take up to wait_ms to respond. Sockets on which no
// process listens are removed. `body` is JSON, or empty.
std::vector<FoundGateway> ask_gateways(const std::vector<std::string> &dirs,
                                       std::string_view method, std::string_view target,
                                       std::uint64_t wait_ms, std::string_view body = {});
// Sends a request to the gateway at this socket. Returns nullopt if no gateway listens on it.
std::optional<FoundGateway> ask_gateway(const std::string &socket, std::string_view method,
                                        std::string_view target, std::uint64_t wait_ms,
                                        std::string_view body = {});

}  // namespace bulkhead::program
