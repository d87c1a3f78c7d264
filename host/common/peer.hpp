// Identification of the peer of a Unix socket.
#pragma once

#include <sys/types.h>

namespace bulkhead::program {

// True if the connected process may send requests: it runs as this user (or root) and does not
// descend from one of the gateway's processes, because servers and compartments must not control
// the gateway that runs them. `own` is the topmost process of the gateway, which may send requests
// itself.
//
// Limitations: not detected are a program whose ancestors ended while it continued to run (another
// process adopted it), and a program that a server has started by an unrelated process. Children in
// a separate PID namespace are detected.
bool peer_may_ask(int fd, pid_t own);

}  // namespace bulkhead::program
