#include "connector-stdio/spawn.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace connector_stdio {
namespace {

// Written by the child, which shares our memory until it has executed its program.
struct Report {
  volatile SpawnStep step = SpawnStep::none;
  volatile int error = 0;
};

[[noreturn]] void child_failed(Report *report, SpawnStep step) {
  report->error = errno;
  report->step = step;
  ::_exit(127);
}

void default_signals() {
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  for (int s = 1; s < NSIG; ++s) ::sigaction(s, &standard, nullptr);
}

// Runs in the child on the parent's memory: only system calls, nothing allocated, nothing returned.
[[noreturn]] void run_child(const SpawnRequest &request, pid_t parent, Report *report) {
  // Handlers of the parent must not run here; signals are blocked until all are back to default.
  default_signals();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(127);  // it had died before the line above
  ::setsid();
  if (request.cwd != nullptr && ::chdir(request.cwd) != 0) child_failed(report, SpawnStep::folder);
  if (::dup2(request.in, 0) < 0 || ::dup2(request.out, 1) < 0 || ::dup2(request.err, 2) < 0) {
    child_failed(report, SpawnStep::descriptors);
  }
  ::close_range(3, ~0u, CLOSE_RANGE_CLOEXEC);  // also what others opened without O_CLOEXEC
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(request.program, request.argv, request.envp);
  child_failed(report, SpawnStep::exec);
}

// On its own, so that no variable of the caller lives in a register across vfork's two returns.
[[gnu::noinline]] pid_t vfork_child(const SpawnRequest &request, pid_t parent, Report *report) {
  const pid_t pid = ::vfork();
  if (pid == 0) run_child(request, parent, report);
  return pid;
}

}  // namespace

SpawnResult spawn(const SpawnRequest &request) noexcept {
  Report report;
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid = vfork_child(request, ::getpid(), &report);
  const int error = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return {-1, SpawnStep::clone, error};
  if (report.step == SpawnStep::none) return {pid, SpawnStep::none, 0};
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {-1, report.step, report.error};
}

}  // namespace connector_stdio
