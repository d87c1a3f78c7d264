// What another program of the user has in the kernel: System V shared memory, a semaphore and a
// message queue under target.ipc_key; a POSIX message queue and a file in /dev/shm by the name
// target.ipc_name. Everybody may use them: what refuses them is the confinement.
#pragma once

#include "attempts.hpp"

namespace breakout {

bool make_ipc_objects(const Target &target);    // false: one of them could not be made
void remove_ipc_objects(const Target &target);  // those that there are

}  // namespace breakout
