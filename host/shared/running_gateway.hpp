// Finds a running gateway of this user whose servers a program can use instead of starting its own.
#pragma once

#include <optional>
#include <string>

#include "command_line/arguments.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

inline constexpr std::uint64_t max_start_wait_ms = 10'000;

struct RunningGateway {
  std::string pid, socket;  // process ID and service socket of the gateway
  std::string path, token;  // path and token of its socket for local clients

  std::string endpoint() const { return "the gateway with pid " + pid; }
  // Returns the connector definition for a pipe to the gateway. `process_name` is the name of the
  // client's process.
  std::string definition(std::string_view process_name, std::uint64_t max_message_bytes) const;
};

struct GatewaySearch {
  std::optional<RunningGateway> found;
  std::string reason;     // why no running gateway can be used; empty if none is running
  bool starting = false;  // a gateway with the same configuration is starting
};

// Sends a join request to each running gateway, one after another, and waits up to status_wait_ms
// for each response. A gateway is suitable if its profile has the same marks as `profile` (see
// profile_marks.hpp). The marks include this process's working directory.
GatewaySearch find_running_gateway(const Profile &profile);

// Finds a running gateway for a command. Returns nullopt if --own is set or no gateway is suitable.
// If a gateway with the same configuration is starting, waits up to max_start_wait_ms for it.
// If gateways are running but none is suitable, prints the reason to standard error. If one is
// suitable, prints the unapproved servers of the project file, which were not compared.
std::optional<RunningGateway> gateway_to_use(const Arguments &arguments, const Profile &profile);

}  // namespace bulkhead::program
