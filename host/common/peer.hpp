// Checks whether the peer of a Unix socket may control the gateway.
#pragma once

#include <sys/types.h>

namespace bulkhead::program {

// Returns true if the connected process may send requests: it runs as this user (or root) and is
// not a descendant of one of the gateway's processes, because servers and compartments must not
// control the gateway that runs them. `own` is the topmost process of the gateway, which may itself
// send requests.
//
// Limitations: the check does not detect a program that outlived its ancestors and was adopted by
// another process, or a program that a server started through an unrelated process. Children in a
// separate PID namespace are detected.
bool peer_may_ask(int fd, pid_t own);

}  // namespace bulkhead::program
