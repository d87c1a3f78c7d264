// Kernel objects that represent another program of the user: System V shared memory, a semaphore
// and a message queue under target.ipc_key; a POSIX message queue and a file in /dev/shm named
// target.ipc_name. Their modes permit access by all users, so only the confinement can reject it.
#pragma once

#include "attempts.hpp"

namespace breakout {

bool make_ipc_objects(const Target &target);    // returns false if an object could not be created
void remove_ipc_objects(const Target &target);  // removes only existing objects

}  // namespace breakout
