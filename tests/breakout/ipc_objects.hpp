// Creates kernel objects as another program of the user would: System V shared memory, a semaphore
// and a message queue with target.ipc_key, and a POSIX message queue and a file in /dev/shm with
// target.ipc_name. All users may access them, so only the confinement can prevent it.
#pragma once

#include "attempts.hpp"

namespace breakout {

bool make_ipc_objects(const Target &target);    // returns false if an object could not be created
void remove_ipc_objects(const Target &target);  // ignores objects that do not exist

}  // namespace breakout
