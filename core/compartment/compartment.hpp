// Runs a compartment's process until shutdown. The process receives its slice, opens the resources
// that it needs, and confines itself. Only then does it run plugins and read external data.
#pragma once

#include <functional>
#include <memory>

#include "base/owned_fd.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead {

// Creates the server for the service socket. Destroying the returned object stops the server.
// `requests` is the socket to the supervisor. `end` shuts down the process. Called once, after
// confinement, and only in the control compartment.
using MakeService = std::function<std::shared_ptr<void>(
    Reactor &reactor, OwnedFd listener, OwnedFd requests, std::function<void()> end)>;

// Runs until the supervisor sends `stop` or exits, or the endpoint's host has shut down. Uses the
// descriptors defined in control.hpp. Returns the exit code for the process. Unless the slice was
// invalid or the supervisor has exited, errors have already been reported to the supervisor.
int run_compartment(const MakeService &make_service);

// The value of HostOptions::approval_hint for a gateway that has a service socket.
inline constexpr const char *approval_hint = "run `bulkhead approvals watch` in a terminal";

}  // namespace bulkhead
