// `bulkhead stdio` beside a running gateway: forwards messages between its standard streams and
// that gateway, as the relay of a virtual machine does. It starts no server.
//
// The client's session lives in the gateway. If the connection is lost, requests that were sent are
// answered with error -32001, the gateway (or its successor with the same configuration) is joined
// again, and the client's handshake is repeated. If there is none for own_after_ms, a gateway of
// this user is started without a listening port (`bulkhead serve --no-listen`), which ends with
// this process.
//
// Limits: those of docs/relay.md, except that a message can have
// limits.message_bytes. Used on one thread.
#pragma once

#include "command_line/arguments.hpp"
#include "profile/profile.hpp"
#include "shared/running_gateway.hpp"

namespace bulkhead::program {

// A fixed delay of up to 1.8 s is added, which differs between processes.
inline constexpr std::uint64_t own_after_ms = 1'500;

// Returns the exit code.
int run_joined_stdio(const Arguments &arguments, RunningGateway gateway, const Limits &limits);

}  // namespace bulkhead::program
