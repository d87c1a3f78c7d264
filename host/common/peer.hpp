// Checks whether the process at the other end of a Unix socket may control the gateway.
#pragma once

#include <sys/types.h>

namespace bulkhead::program {

// Returns true if the connected process may send requests: it runs as this user or root, and it is
// not a descendant of `own`, the topmost process of the gateway. Servers and compartments are
// descendants and must not control the gateway that runs them. `own` itself may send requests.
//
// Descendants in a separate PID namespace are detected. Two kinds of programs are not: programs
// whose ancestors have exited (another process has adopted them), and programs that a server
// started through an unrelated process.
bool peer_may_ask(int fd, pid_t own);

}  // namespace bulkhead::program
