// Implements bh.host.spawn/1 for FakeHost: starts child processes without a sandbox. Unlike a host,
// spawn() waits for the start of the program, and every signal is sent to the child's process
// group.
#pragma once

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "../abi/ext/draft/spawn.h"
#include "../cpp/basics.hpp"

namespace bh::testing {

class FakeChildren {
 public:
  FakeChildren() = default;
  FakeChildren(const FakeChildren &) = delete;
  FakeChildren &operator=(const FakeChildren &) = delete;
  ~FakeChildren() {
    for (const auto &[id, pid] : children_) {
      ::kill(-pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

  std::size_t size() const noexcept { return children_.size(); }

  bh_status spawn(const bh_spawn &request, bh_child *out, bh_error *error) {
    int in[2], from[2], err[2], failure[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(from, O_CLOEXEC) != 0 ||
        ::pipe2(err, O_CLOEXEC) != 0 || ::pipe2(failure, O_CLOEXEC) != 0) {
      return fail(error, BH_E_LIMIT, "no pipes");
    }
    std::vector<std::string> texts{std::string(view(request.program)),
                                   std::string(view(request.cwd))};
    for (std::uint32_t i = 0; i < request.argc; ++i) texts.emplace_back(view(request.argv[i]));
    for (std::uint32_t i = 0; i < request.envc; ++i) texts.emplace_back(view(request.env[i]));
    std::vector<char *> argv, envp;
    for (std::size_t i = 2; i < texts.size(); ++i) {
      (i < 2 + request.argc ? argv : envp).push_back(texts[i].data());
    }
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    const pid_t pid = ::fork();
    if (pid == 0) {
      run(texts[0].c_str(), texts[1], argv.data(), envp.data(), in[0], from[1], err[1], failure[1]);
    }
    for (const int fd : {in[0], from[1], err[1], failure[1]}) ::close(fd);
    int number = 0;
    const bool failed = ::read(failure[0], &number, sizeof number) == sizeof number;
    ::close(failure[0]);
    if (failed || pid < 0) {
      for (const int fd : {in[1], from[0], err[0]}) ::close(fd);
      if (pid > 0) ::waitpid(pid, nullptr, 0);
      return refused(request, number, error);
    }
    for (const int fd : {in[1], from[0], err[0]}) {
      ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
    out->pid = pid;
    out->id = ++last_;
    out->pidfd = static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
    out->in = in[1];
    out->out = from[0];
    out->err = err[0];
    children_[out->id] = pid;
    return BH_OK;
  }

  bh_status kill(bh_child_id child, std::int32_t signal) const {
    const auto at = children_.find(child);
    if (at == children_.end()) return BH_STALE;
    ::kill(-at->second, signal);
    return BH_OK;
  }

  bh_status reap(bh_child_id child, bh_child_end *out) {
    const auto at = children_.find(child);
    if (at == children_.end()) return BH_STALE;
    siginfo_t info{};
    const int result = ::waitid(P_PID, static_cast<id_t>(at->second), &info, WEXITED | WNOHANG);
    if (result == 0 && info.si_pid == 0) return BH_PENDING;
    out->how = result != 0                  ? BH_CHILD_UNKNOWN
               : info.si_code == CLD_EXITED ? BH_CHILD_EXITED
                                            : BH_CHILD_KILLED;
    out->status = info.si_status;
    children_.erase(at);
    return BH_OK;
  }

 private:
  [[noreturn]] static void run(const char *program, const std::string &cwd, char *const *argv,
                               char *const *envp, int in, int out, int err, int failure) {
    ::setsid();
    const bool there = cwd.empty() || ::chdir(cwd.c_str()) == 0;
    ::dup2(in, 0);
    ::dup2(out, 1);
    ::dup2(err, 2);
    ::syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_CLOEXEC);
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    if (there) ::execve(program, argv, envp);
    const int number = errno;
    if (::write(failure, &number, sizeof number) < 0) ::_exit(126);
    ::_exit(127);
  }

  static bh_status refused(const bh_spawn &request, int number, bh_error *error) {
    const bh_status code = number == ENOENT                      ? BH_E_NOT_FOUND
                           : number == EACCES || number == EPERM ? BH_E_DENIED
                                                                 : BH_E_IO;
    return fail(error, code,
                "fake host: command \"" + std::string(view(request.argv[0])) + "\" of server \"" +
                    std::string(view(request.server)) + "\": " + ::strerrorname_np(number));
  }

  std::map<bh_child_id, pid_t> children_;
  bh_child_id last_ = 0;
};

}  // namespace bh::testing
