// The life of one compartment's process: it takes its slice, opens what it will need, gives up
// everything else, and only then lets plugins and bytes from outside in.
#pragma once

#include <functional>
#include <memory>

#include "base/owned_fd.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead {

// Makes what serves the service socket; it goes with the result. `requests` is the socket to the
// supervisor, `end` ends the process. Called once, in the compartment that has the socket, when it
// is confined.
using MakeService = std::function<std::shared_ptr<void>(
    Reactor &reactor, OwnedFd listener, OwnedFd requests, std::function<void()> end)>;

// Runs until the supervisor says stop, or has gone; with the descriptors of control.hpp. Returns
// the process's exit code; errors have gone to the supervisor.
int run_compartment(const MakeService &make_service);

// HostOptions::approval_hint of a gateway that people reach by its service socket.
inline constexpr const char *approval_hint =
    "`bulkhead approvals watch` in a terminal would be asked";

}  // namespace bulkhead
