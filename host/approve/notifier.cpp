#include "approve/notifier.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "common/text.hpp"

namespace bulkhead::program {
namespace {

constexpr std::size_t max_columns = 80;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : first_line(printable(text), max_columns)) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else {
      out += c;
    }
  }
  return out;
}

// Returns 0 or an errno value.
int start(const std::string &body, pid_t *pid) {
  const char *const argv[] = {"notify-send", "--app-name=Bulkhead",
                              "--",          "Bulkhead: a call requires approval",
                              body.c_str(),  nullptr};
  posix_spawn_file_actions_t files;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  const int error =
      ::posix_spawnp(pid, argv[0], &files, nullptr, const_cast<char *const *>(argv), environ);
  ::posix_spawn_file_actions_destroy(&files);
  return error;
}

}  // namespace

std::string notification_text(const SeenQuestion &q) {
  return escaped(q.name) + " of server " + escaped(q.server) + ", called by " +
         escaped(q.process_name.empty() ? q.transport : q.process_name) +
         (q.claimed_name.empty() ? "" : " (claims to be \"" + escaped(q.claimed_name) + "\")") +
         ", rule " + escaped(q.rule) + ". To answer: bulkhead approvals";
}

Notifier::~Notifier() {
  reap();
}

void Notifier::reap() {
  std::erase_if(running_, [](pid_t pid) { return ::waitpid(pid, nullptr, WNOHANG) != 0; });
}

std::string Notifier::show(const std::vector<SeenQuestion> &questions) {
  reap();
  if (known_.size() > max_known) known_.clear();
  for (const SeenQuestion &question : questions) {
    if (!known_.insert(question.id).second || failed_) continue;
    if (running_.size() >= max_running) continue;
    pid_t pid = 0;
    if (const int error = start(notification_text(question), &pid); error != 0) {
      failed_ = true;
      return std::string("cannot start notify-send: ") + std::strerror(error);
    }
    running_.push_back(pid);
  }
  return {};
}

}  // namespace bulkhead::program
