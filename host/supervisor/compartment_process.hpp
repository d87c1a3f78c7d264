// The process of a compartment: start, exit status, memory and descriptors.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace bulkhead::program {

// Starts this program as `bulkhead compartment NAME`. /proc/self/exe is the running program even if
// its file was replaced. The process receives the three sockets, and standard input and output if
// `stdio` is set. Returns 0 and sets *pid, or returns an errno value.
int spawn_compartment(const std::string &name, bool stdio, int control, int request, int log,
                      pid_t *pid);

// Returns "was killed by SIGKILL" or "ended with exit code 1". `status` is a status from waitpid().
std::string describe_end(int status);

std::uint64_t resident_bytes(int pid);
// Returns 0 if the descriptors cannot be counted, because the compartment runs as a different user
// and this process is not root.
std::uint32_t count_descriptors(int pid);

}  // namespace bulkhead::program
