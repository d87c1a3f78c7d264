// Who is at the other end of a Unix socket.
#pragma once

#include <sys/types.h>

namespace bulkhead::program {

// May the process that connected ask us for something? It must run as our user (or root), and must
// not descend from one of our own processes: servers and compartments have no say over the gateway
// that runs them. `own` is the topmost of our processes; it may itself.
//
// What this cannot see: a program whose ancestors ended while it went on (it was adopted by another
// process), and one that a server has somebody else start. Children in a process namespace of their
// own stay visible as ours.
bool peer_may_ask(int fd, pid_t own);

}  // namespace bulkhead::program
