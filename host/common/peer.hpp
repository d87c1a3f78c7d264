// Checks whether the process at the other end of a Unix socket may control the gateway.
#pragma once

#include <sys/types.h>

namespace bulkhead::program {

// Returns true if the connected process may send requests. This is the case if it runs as this user
// or root and is not a descendant of `own`, the gateway's topmost process. Servers and compartments
// are descendants of `own` and must not control the gateway that runs them. `own` itself may send
// requests.
//
// Descendants in a separate PID namespace are detected. Two kinds of programs are not: programs
// whose ancestors have exited, so that another process has adopted them, and programs that a server
// started through an unrelated process.
bool peer_may_ask(int fd, pid_t own);

}  // namespace bulkhead::program
