// The process of one compartment, from its slice to its shutdown: it receives its slice, opens the
// resources that it needs, confines itself, and only then runs plugins and reads bytes from
// outside.
#pragma once

#include <functional>
#include <memory>

#include "base/owned_fd.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead {

// Creates the server of the service socket, which ends with the result. `requests` is the socket to
// the supervisor; `end` ends the process. Called once, after the confinement, in the compartment
// that has the service socket.
using MakeService = std::function<std::shared_ptr<void>(
    Reactor &reactor, OwnedFd listener, OwnedFd requests, std::function<void()> end)>;

// Runs until the supervisor sends stop or has ended, with the descriptors of control.hpp. Returns
// the process's exit code; errors were sent to the supervisor.
int run_compartment(const MakeService &make_service);

// HostOptions::approval_hint of a gateway that has a service socket.
inline constexpr const char *approval_hint =
    "`bulkhead approvals watch` in a terminal would be asked";

}  // namespace bulkhead
