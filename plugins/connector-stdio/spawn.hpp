// Starts a child process without copying this one's address space.
#pragma once

#include <sys/types.h>

namespace connector_stdio {

enum class SpawnStep : int { none, clone, folder, descriptors, exec };

struct SpawnRequest {
  const char *program;  // path of the file
  char *const *argv;
  char *const *envp;
  const char *cwd;   // null: this process's
  int in, out, err;  // become 0, 1 and 2; all others are closed in the child. Must be above 2
};

struct SpawnResult {
  pid_t pid;  // -1: failed
  SpawnStep failed;
  int error;  // errno of the step that failed
};

// Returns when the child runs its program or has failed to. The child leads a session and process
// group of its own (its id is the pid), has default signal handling and dies with the calling
// thread. Thread: one that lives as long as the child should.
SpawnResult spawn(const SpawnRequest &request) noexcept;

}  // namespace connector_stdio
