// Runs the process of one compartment until shutdown. It receives its slice, opens the resources
// that it needs, and confines itself. Only then does it run plugins and read data from outside.
#pragma once

#include <functional>
#include <memory>

#include "base/owned_fd.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead {

// Creates the server for the service socket. The server ends when the returned object is destroyed.
// `requests` is the socket to the supervisor; `end` ends the process. Called once, after the
// confinement, in the compartment that has the service socket.
using MakeService = std::function<std::shared_ptr<void>(
    Reactor &reactor, OwnedFd listener, OwnedFd requests, std::function<void()> end)>;

// Runs until the supervisor sends stop or ends, using the descriptors in control.hpp. Returns the
// exit code of the process; errors have been sent to the supervisor.
int run_compartment(const MakeService &make_service);

// The HostOptions::approval_hint of a gateway with a service socket.
inline constexpr const char *approval_hint = "run `bulkhead approvals watch` in a terminal";

}  // namespace bulkhead
