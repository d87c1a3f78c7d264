// `bulkhead stdio` beside a running gateway: forwards messages between its standard streams and
// that gateway, like the relay of a virtual machine. It starts no server.
//
// The client's session is in the gateway. If the connection is lost, requests that were sent are
// answered with error -32001. The gateway, or another one with the same configuration, is then
// joined and the client's handshake is repeated. If no such gateway is found for own_after_ms, one
// is started without a listening port (`bulkhead serve --no-listen`); it ends with this process.
//
// The limits of docs/relay.md apply, except that a message can have limits.message_bytes. Used on
// one thread.
#pragma once

#include "command_line/arguments.hpp"
#include "profile/profile.hpp"
#include "shared/running_gateway.hpp"

namespace bulkhead::program {

// A fixed delay of up to 1.8 s, different for each process, is added.
inline constexpr std::uint64_t own_after_ms = 1'500;

// Returns the exit code.
int run_joined_stdio(const Arguments &arguments, RunningGateway gateway, const Limits &limits);

}  // namespace bulkhead::program
