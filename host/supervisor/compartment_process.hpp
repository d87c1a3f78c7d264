// A compartment's process as the kernel sees it: how it is started, how it ended, what it takes.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace bulkhead::program {

// Starts this same program as `bulkhead compartment NAME`; /proc/self/exe is it even when its file
// was replaced meanwhile. It gets the three sockets, and standard input and output if `stdio`.
// Returns 0 and *pid, or an errno value.
int spawn_compartment(const std::string &name, bool stdio, int control, int request, int log,
                      pid_t *pid);

// "was ended by SIGKILL", "ended with exit code 1", of what waitpid() gave.
std::string describe_end(int status);

// 0: it has ended.
std::uint64_t resident_bytes(int pid);
// 0 when we may not look: the compartment has another user, and we are not root.
std::uint32_t count_descriptors(int pid);

}  // namespace bulkhead::program
