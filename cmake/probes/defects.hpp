// Reports the defects of a library. A probe prints the name of each defect on its own line.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

// Runs `fine` in a child process. Prints `defect` if the function returns false or a signal
// terminates the child.
inline void probe(const char *defect, bool (*fine)()) {
  std::fflush(stdout);
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    ::alarm(20);
    ::_exit(fine() ? 0 : 1);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) {
    std::perror("probe");
    ::_exit(2);
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) std::puts(defect);
}
