// Kernel objects of another program of the user: System V shared memory, a semaphore and a message
// queue under target.ipc_key; a POSIX message queue and a file in /dev/shm with the name
// target.ipc_name. Their mode permits access by everybody, so that only the confinement rejects it.
#pragma once

#include "attempts.hpp"

namespace breakout {

bool make_ipc_objects(const Target &target);    // false: an object could not be created
void remove_ipc_objects(const Target &target);  // removes existing objects only

}  // namespace breakout
