#include "check/trial.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "bulkhead/cpp/clock.hpp"
#include "bulkhead/cpp/text.hpp"
#include "common/signals.hpp"
#include "sandbox/confine.hpp"

namespace bulkhead::check {
namespace {

constexpr std::size_t most_text = 512;         // of one report, in bytes
constexpr std::size_t most_reports = 2 << 20;  // of one child, in bytes
constexpr std::uint64_t most_memory = 2ull << 30, most_processes = 1'024, most_file = 256u << 20;
using bh::ns_per_ms;

// A step that has begun and not ended.
struct Step {
  Rule rule = Rule::loads;
  std::string what = "an unknown step";
};

// The parent's side of one child.
class Watch {
 public:
  Watch(const TrialOptions &options, Report *report) : options_(options), report_(*report) {
    end_ns_ = bh::monotonic_ns() + options.total_timeout_ms * ns_per_ms;
    step_end_ns_ = bh::monotonic_ns() + options.step_timeout_ms * ns_per_ms;
  }

  // Why the child must be killed.
  enum class Kill : std::uint8_t { no, step_timeout, total_timeout, too_many_reports, interrupted };

  // Reads reports until the child closes its end or a limit is exceeded.
  Kill read_all(int fd) {
    for (;;) {
      if (program::stop_requested()) return Kill::interrupted;
      const std::uint64_t end = std::min(end_ns_, step_end_ns_), now = bh::monotonic_ns();
      // What the child has sent counts, even if this process was stopped and is late.
      const int wait_ms = now >= end ? 0 : static_cast<int>((end - now) / ns_per_ms + 1);
      pollfd polled{fd, POLLIN, 0};
      const int ready = ::poll(&polled, 1, wait_ms);
      if (ready == 0 && now >= end) return timeout(now);
      if (ready <= 0) continue;
      std::array<char, 4096> piece;
      const ssize_t n = ::read(fd, piece.data(), piece.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return Kill::no;
      received_ += static_cast<std::size_t>(n);
      if (received_ > most_reports) return Kill::too_many_reports;
      pending_.append(piece.data(), static_cast<std::size_t>(n));
      take_lines();
    }
  }

  // Waits until the child has exited. Used when it has closed its end, which it may do without
  // exiting. The child is not reaped.
  Kill wait_exit(pid_t child) {
    for (;;) {
      siginfo_t info{};
      const int done =
          ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT | WNOHANG);
      if ((done == 0 && info.si_pid != 0) || (done != 0 && errno != EINTR)) return Kill::no;
      if (program::stop_requested()) return Kill::interrupted;
      const std::uint64_t now = bh::monotonic_ns();
      if (now >= std::min(end_ns_, step_end_ns_)) return timeout(now);
      ::usleep(1'000);
    }
  }

  // Returns false if the child did not finish.
  bool ended(int status, Kill kill) {
    const std::string rest = "the rest of " + id_of(step_.rule) + ": the checks ";
    if (kill == Kill::interrupted) {
      add(&report_.not_checked, "the remaining rules, because the check was interrupted");
    } else if (kill == Kill::total_timeout) {
      add(&report_.not_checked,
          rest + "take longer than " + std::to_string(options_.total_timeout_ms / 1'000) + " s");
    } else if (kill == Kill::too_many_reports) {
      add(&report_.not_checked, rest + "have too many steps");
    } else if (kill == Kill::step_timeout) {
      report_.violated(step_.rule, "it did not return from " + step_.what + " within " +
                                       std::to_string(options_.step_timeout_ms) + " ms");
    } else if (WIFSIGNALED(status)) {
      const char *name = ::sigabbrev_np(WTERMSIG(status));
      report_.violated(step_.rule, "it crashed in " + step_.what + " (SIG" +
                                       (name == nullptr ? "?" : name) + ")");
    } else if (!finished_ || WEXITSTATUS(status) != 0) {
      report_.violated(step_.rule, "it ended the process in " + step_.what);
    } else {
      return true;
    }
    return false;
  }

 private:
  Kill timeout(std::uint64_t now) const noexcept {
    return now >= step_end_ns_ ? Kill::step_timeout : Kill::total_timeout;
  }

  void take_lines() {
    for (;;) {
      const auto end = pending_.find('\n');
      if (end == std::string::npos) break;
      take(std::string_view(pending_).substr(0, end));
      pending_.erase(0, end + 1);
    }
    if (pending_.size() > most_text + 16) pending_.clear();
  }

  // A line is a letter, the number of a rule (0 if there is none), a space and the text.
  void take(std::string_view line) {
    const auto space = std::min(line.find(' '), line.size());
    if (space == 0) return;  // the child is untrusted, and may send anything
    unsigned number = 0;
    std::from_chars(line.data() + 1, line.data() + space, number);
    const std::string text = bh::one_line(line.substr(std::min(space + 1, line.size())), most_text);
    const auto rule = rule_of(number);
    step_end_ns_ = bh::monotonic_ns() + options_.step_timeout_ms * ns_per_ms;
    switch (line[0]) {
      case 'S':
        if (rule) step_ = {*rule, text};
        break;
      case 'V':
        if (rule) report_.violated(*rule, text);
        break;
      case 'C':
        if (rule) report_.checked.insert(*rule);
        break;
      case 'N':
        add(&report_.not_checked, text);
        break;
      case 'I':
        add(&report_.notes, text);
        break;
      case 'F':
        finished_ = true;
        break;
      default:
        break;
    }
  }
  static void add(std::vector<std::string> *to, const std::string &text) {
    if (to->size() < 64 && std::find(to->begin(), to->end(), text) == to->end()) {
      to->push_back(text);
    }
  }

  const TrialOptions &options_;
  Report &report_;
  std::uint64_t end_ns_, step_end_ns_;
  std::size_t received_ = 0;
  std::string pending_;
  Step step_;
  bool finished_ = false;
};

Confinement confinement_of(const CheckedLibrary &library, const TrialOptions &options) {
  Confinement wish;
  wish.role = "plugin check";
  wish.network = options.network;
  wish.memory_bytes = most_memory;
  wish.file_bytes = most_file;
  if (::geteuid() != 0) wish.processes = most_processes;  // not enforced for root
  wish.paths = library_paths();
  if (options.network) {
    for (PathRule &rule : network_config_paths()) wish.paths.push_back(std::move(rule));
  }
  wish.paths.push_back({{}, library.fd(), PathRule::Access::read});
  wish.paths.push_back({options.folder, -1, PathRule::Access::read_write});
  return wish;
}

// Never returns.
[[noreturn]] void run_child(const CheckedLibrary &library, const TrialOptions &options, int fd,
                            const std::function<void(Trial &)> &body) {
  ::setsid();  // a process group of its own, without a terminal
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::signal(SIGPIPE, SIG_IGN);
  const rlimit no_core{0, 0};
  ::setrlimit(RLIMIT_CORE, &no_core);
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int standard : {0, 1, 2}) ::dup2(nothing, standard);
  const std::array keep{fd, library.fd()};
  close_other_descriptors(keep);
  clear_environment();
  ::setenv("TMPDIR", options.folder.c_str(), 1);
  Trial trial(fd);
  if (options.listeners) trial.open_listeners(options.folder);
  auto enforced = confine(confinement_of(library, options));
  if (!enforced) {
    trial.not_checked("the child process cannot be confined: " + enforced.error().text);
    trial.finished();
    ::_exit(0);
  }
  for (const std::string &part : enforced->missing) {
    trial.note("the kernel does not support a part of the confinement: " + part);
  }
  try {
    body(trial);
  } catch (...) {  // an exception of the plugin has crossed the ABI
    std::abort();
  }
  ::_exit(0);
}

}  // namespace

void Trial::send(char kind, unsigned number, std::string_view text) {
  // A single write of less than PIPE_BUF bytes is not mixed with those of other threads.
  const std::string line =
      kind + std::to_string(number) + " " + bh::one_line(text, most_text) + "\n";
  for (std::string_view rest = line; !rest.empty();) {
    const ssize_t n = ::write(fd_, rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) ::_exit(1);
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
}
void Trial::step(Rule rule, std::string_view what) {
  if (std::uncaught_exceptions() > 0) return;  // the step that threw remains the current one
  send('S', static_cast<unsigned>(rule), what);
}
void Trial::violated(Rule rule, std::string_view what) {
  send('V', static_cast<unsigned>(rule), what);
}
void Trial::checked(Rule rule) {
  send('C', static_cast<unsigned>(rule), "");
}
void Trial::not_checked(std::string_view why) {
  send('N', 0, why);
}
void Trial::note(std::string_view what) {
  send('I', 0, what);
}
void Trial::finished() {
  send('F', 0, "");
}

Result<bool> run_trial(const CheckedLibrary &library, const TrialOptions &options,
                       const std::function<void(Trial &)> &body, Report *report) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fail(BH_E_LIMIT, "cannot create a pipe: " + bh::error_name(errno));
  }
  OwnedFd from(ends[0]), to(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return fail(BH_E_LIMIT, "cannot start a process: " + bh::error_name(errno));
  if (child == 0) run_child(library, options, to.get(), body);
  to.reset();
  Watch watch(options, report);
  auto kill = watch.read_all(from.get());
  if (kill == Watch::Kill::no) kill = watch.wait_exit(child);
  if (kill != Watch::Kill::no) ::kill(child, SIGKILL);
  // Processes that the plugin has started are ended before the child is reaped. Until then, its
  // process group cannot have another owner.
  siginfo_t ignored{};
  while (::waitid(P_PID, static_cast<id_t>(child), &ignored, WEXITED | WNOWAIT) != 0 &&
         errno == EINTR) {
  }
  ::kill(-child, SIGKILL);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return watch.ended(status, kill);
}

}  // namespace bulkhead::check
