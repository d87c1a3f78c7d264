// Finds a running gateway of this user whose servers a program may use instead of starting its own.
#pragma once

#include <optional>
#include <string>

#include "command_line/arguments.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

struct RunningGateway {
  std::string pid, socket;  // of its service socket
  std::string path, token;  // of its socket for local clients

  std::string endpoint() const { return "the gateway with pid " + pid; }
  // For the connector of a pipe; process_name: the client's.
  std::string definition(std::string_view process_name, std::uint64_t max_message_bytes) const;
};

struct GatewaySearch {
  std::optional<RunningGateway> found;
  std::string reason;  // why a running gateway cannot be used; empty: none runs
};

// Asks each running gateway, one after another, for at most status_wait_ms. The profile is compared
// part by part (profile_marks.hpp); the working folder is that of now.
GatewaySearch find_running_gateway(const Profile &profile);

// The same for a short command. With --own, or if there is none, nullopt; says on standard error
// why a running gateway is not used.
std::optional<RunningGateway> gateway_to_use(const Arguments &arguments, const Profile &profile);

}  // namespace bulkhead::program
