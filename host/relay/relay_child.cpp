#include "relay/relay_child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <utility>

#include "pipe/line.hpp"
#include "relay/write_out.hpp"

namespace bulkhead::relay {

RelayChild::RelayChild(const std::vector<std::string> &arguments) {
  std::vector<char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  int in[2], out[2];
  if (::pipe2(in, O_CLOEXEC) != 0) return;
  OwnedFd child_in(in[0]);
  in_ = OwnedFd(in[1]);
  if (::pipe2(out, O_CLOEXEC) != 0) return;
  OwnedFd child_out(out[1]);
  out_ = OwnedFd(out[0]);
  ::signal(SIGPIPE, SIG_IGN);
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::dup2(child_in.get(), STDIN_FILENO);
  ::dup2(child_out.get(), STDOUT_FILENO);
  ::execv("/proc/self/exe", argv.data());
  ::_exit(127);
}

RelayChild::~RelayChild() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool RelayChild::send(std::string_view line) {
  return write_all(in_.get(), line) && write_all(in_.get(), "\n");
}

std::optional<std::string> RelayChild::answer(std::string_view id) {
  while (auto text = line()) {
    const auto what = pipe::classify(*text);
    if (!what.method.empty()) continue;
    const bool without = what.id.empty() || what.id == "null";
    if (id.empty() ? without : what.id == id) return text;
    if (stray_.empty()) stray_ = std::move(*text);
  }
  wait_ms_ = next_wait_ms;
  return std::nullopt;
}

std::string RelayChild::next_stray() {
  return std::exchange(stray_, {});
}

std::optional<std::string> RelayChild::line() {
  std::size_t end = 0;
  while ((end = read_.find('\n')) == std::string::npos) {
    pollfd ready{out_.get(), POLLIN, 0};
    const int n = ::poll(&ready, 1, wait_ms_);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || read_.size() > max_line_bytes) return std::nullopt;
    char some[65'536];
    const ssize_t got = ::read(out_.get(), some, sizeof some);
    if (got <= 0) return std::nullopt;
    read_.append(some, static_cast<std::size_t>(got));
  }
  std::string text = read_.substr(0, end);
  read_.erase(0, end + 1);
  return text;
}

int RelayChild::end() {
  in_.reset();
  while (line()) {
  }
  int status = 0;
  // The relay has closed its output, so it is about to exit. If it does not exit in time, the
  // destructor kills it.
  for (int i = 0; i < 50; ++i) {
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    ::poll(nullptr, 0, 100);
  }
  return -1;
}

}  // namespace bulkhead::relay
