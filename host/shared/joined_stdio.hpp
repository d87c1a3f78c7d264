// Runs `bulkhead stdio` as a client of a running gateway. Messages are forwarded between standard
// input and output and the gateway, which holds the session. No servers are started.
//
// If the connection is lost, requests that have already been sent fail with error -32001. The
// program then joins a running gateway with the same configuration and repeats the client's
// handshake. If it does not find such a gateway within own_after_ms, it starts one with `bulkhead
// serve --no-listen`. That gateway does not listen on a port, and it exits when this process exits.
//
// The limits in docs/relay.md apply, except that a message may be as large as limits.message_bytes.
// Used on one thread.
#pragma once

#include "command_line/arguments.hpp"
#include "profile/profile.hpp"
#include "shared/running_gateway.hpp"

namespace bulkhead::program {

// Each process adds a fixed delay of up to 1.8 s, which depends on its process ID.
inline constexpr std::uint64_t own_after_ms = 1'500;

// Returns the exit code of the process.
int run_joined_stdio(const Arguments &arguments, RunningGateway gateway, const Limits &limits);

}  // namespace bulkhead::program
