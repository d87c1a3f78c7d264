// Finds a running gateway of this user whose servers a program may use instead of starting its own.
#pragma once

#include <optional>
#include <string>

#include "command_line/arguments.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

struct RunningGateway {
  std::string pid, socket;  // of the service socket
  std::string path, token;  // of the socket for local clients

  std::string endpoint() const { return "the gateway with pid " + pid; }
  // Returns the connector definition for a pipe. process_name is the name of the client's process.
  std::string definition(std::string_view process_name, std::uint64_t max_message_bytes) const;
};

struct GatewaySearch {
  std::optional<RunningGateway> found;
  std::string reason;  // why a running gateway cannot be used; empty if none is running
};

// Asks each running gateway, one after another, and waits at most status_wait_ms for each. The
// profile is compared part by part (profile_marks.hpp). Uses the current working folder.
GatewaySearch find_running_gateway(const Profile &profile);

// Like find_running_gateway(), for a command. Returns nullopt with --own or if there is no such
// gateway. If a running gateway cannot be used, prints the reason to standard error.
std::optional<RunningGateway> gateway_to_use(const Arguments &arguments, const Profile &profile);

}  // namespace bulkhead::program
