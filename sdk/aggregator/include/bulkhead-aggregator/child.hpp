// A child process with pipes to its standard input and output. Header only; C++20, Linux.
#pragma once

#include <bulkhead/cpp/text.hpp>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

extern char **environ;

namespace bh::aggregator::detail {

class Fd {
 public:
  Fd() noexcept = default;
  explicit Fd(int fd) noexcept : fd_(fd) {}
  Fd(Fd &&other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd &operator=(Fd &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const noexcept { return fd_; }
  void reset() noexcept {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// Moves a descriptor to a number above those of the standard descriptors, which are replaced in the
// child. This is necessary if the program has closed its own standard descriptors.
inline Fd away_from_standard(Fd fd) {
  if (fd.get() < 0 || fd.get() > STDERR_FILENO) return fd;
  return Fd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

inline bool make_pipe(Fd *read_end, Fd *write_end) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return false;
  *read_end = away_from_standard(Fd(ends[0]));
  *write_end = away_from_standard(Fd(ends[1]));
  return read_end->get() >= 0 && write_end->get() >= 0;
}

// A child process. It is killed and reaped on destruction. Not thread-safe.
class Child {
 public:
  Child() noexcept = default;
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;
  ~Child() { end(); }

  bool running() const noexcept { return pid_ > 0; }
  pid_t pid() const noexcept { return pid_; }
  // The pipes to the child's standard input and output. Both are non-blocking.
  int input() const noexcept { return input_.get(); }
  int output() const noexcept { return output_.get(); }
  // Returns a descriptor that becomes readable when the process exits, or -1 if the kernel does not
  // support pidfds.
  int ended() const noexcept { return pidfd_.get(); }
  void close_input() noexcept { input_.reset(); }

  // Kills the current process, if any, and starts a program. If `program` contains no slash, it is
  // looked up in PATH. On failure, returns false and sets *why to the reason.
  bool start(const std::string &program, const std::vector<std::string> &arguments, int error_fd,
             std::string *why) {
    end();
    Fd theirs_in, theirs_out;
    if (!make_pipe(&theirs_in, &input_) || !make_pipe(&output_, &theirs_out)) {
      return failed("pipe", errno, why);
    }
    for (const int fd : {input_.get(), output_.get()}) ::fcntl(fd, F_SETFL, O_NONBLOCK);
    std::vector<char *> argv{const_cast<char *>(program.c_str())};
    for (const std::string &argument : arguments) {
      argv.push_back(const_cast<char *>(argument.c_str()));
    }
    argv.push_back(nullptr);
    const int problem = spawn(argv.data(), theirs_in.get(), theirs_out.get(), error_fd);
    if (problem != 0) return failed("cannot start " + program, problem, why);
    pidfd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    return true;
  }

  // Waits at most timeout_ms for the process to exit, or not at all if the kernel does not support
  // pidfds. Returns true if the process has been reaped or there is none.
  bool wait(int timeout_ms) {
    if (pid_ <= 0) return true;
    if (pidfd_.get() >= 0) {
      pollfd ready{pidfd_.get(), POLLIN, 0};
      if (::poll(&ready, 1, timeout_ms) == 0) return false;
    }
    return reap(WNOHANG);
  }

  // Kills and reaps the process.
  void end() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      reap(0);
    }
    input_.reset();
    output_.reset();
    pidfd_.reset();
  }

 private:
  static bool failed(const std::string &what, int error, std::string *why) {
    *why = what + ": " + error_name(error);
    return false;
  }

  int spawn(char *const *argv, int in, int out, int error_fd) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    int problem = ::posix_spawn_file_actions_init(&actions);
    if (problem != 0) return problem;
    problem = ::posix_spawnattr_init(&attributes);
    if (problem != 0) {
      ::posix_spawn_file_actions_destroy(&actions);
      return problem;
    }
    ::posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (error_fd != STDERR_FILENO) {
      ::posix_spawn_file_actions_adddup2(&actions, error_fd, STDERR_FILENO);
    }
    // Otherwise, the child would inherit this program's blocked and ignored signals. With these
    // attributes, it starts with no blocked signals and with the default action for SIGPIPE.
    sigset_t none, pipe;
    ::sigemptyset(&none);
    ::sigemptyset(&pipe);
    ::sigaddset(&pipe, SIGPIPE);
    ::posix_spawnattr_setsigmask(&attributes, &none);
    ::posix_spawnattr_setsigdefault(&attributes, &pipe);
    ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    problem = ::posix_spawnp(&pid_, argv[0], &actions, &attributes, argv, environ);
    if (problem != 0) pid_ = -1;
    ::posix_spawnattr_destroy(&attributes);
    ::posix_spawn_file_actions_destroy(&actions);
    return problem;
  }

  bool reap(int flags) {
    int status = 0;
    pid_t got = 0;
    do {
      got = ::waitpid(pid_, &status, flags);
    } while (got < 0 && errno == EINTR);
    if (got == 0) return false;
    pid_ = -1;  // also if other code has reaped the process
    return true;
  }

  pid_t pid_ = -1;
  Fd input_, output_, pidfd_;
};

}  // namespace bh::aggregator::detail
