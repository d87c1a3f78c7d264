// A compartment's process: start, exit status, memory and descriptors.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace bulkhead::program {

// Starts this program as `bulkhead compartment NAME`. /proc/self/exe is the running program even if
// its file was replaced. The process gets the three sockets, and standard input and output if
// `stdio`. Returns 0 and sets *pid, or returns an errno value.
int spawn_compartment(const std::string &name, bool stdio, int control, int request, int log,
                      pid_t *pid);

// "was killed by SIGKILL", "ended with exit code 1"; `status` as waitpid() returns it.
std::string describe_end(int status);

// Returns 0 if the process has ended.
std::uint64_t resident_bytes(int pid);
// Returns 0 without permission: the compartment has a different user, and this process is not root.
std::uint32_t count_descriptors(int pid);

}  // namespace bulkhead::program
