// Starts the process of a compartment, and reads its exit status, memory and descriptors.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace bulkhead::program {

// Starts this program as `bulkhead compartment NAME`. Uses /proc/self/exe, which is the running
// program even if its file has been replaced. The process inherits the sockets `control`, `request`
// and `log`. It inherits standard input and output if `stdio` is true. Returns 0 and sets *pid, or
// returns an errno value.
int spawn_compartment(const std::string &name, bool stdio, int control, int request, int log,
                      pid_t *pid);

// Describes how a process ended, for example "was killed by SIGKILL" or "exited with code 1".
// `status` is the status returned by waitpid().
std::string describe_end(int status);
// Returns true if a process with this exit status was killed by a signal that a fault in its code
// causes.
bool ended_by_crash(int status);

std::uint64_t resident_bytes(int pid);
// Returns 0 if the number is unknown, for example on Linux before 6.2 if the process is not
// dumpable.
std::uint32_t count_descriptors(int pid);

}  // namespace bulkhead::program
