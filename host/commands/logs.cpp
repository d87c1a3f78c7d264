// Implements `logs`, which shows a server's standard error output from its log file.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/owned_fd.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/suggestion.hpp"
#include "common/text.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {
namespace {

constexpr std::uint64_t usual_lines = 100;
// To find the last lines, at most this many bytes are read from each file.
constexpr off_t max_tail_bytes = 4 << 20;
constexpr std::size_t read_bytes = 64 << 10, max_line_bytes = 64 << 10;
constexpr useconds_t log_poll_us = 250'000;

// Reads a server's log file. When the file is full, the gateway renames it to PATH.1. The text
// comes from the server, so control characters are replaced.
class LogFile {
 public:
  explicit LogFile(std::string path) : path_(std::move(path)) {}

  bool exists() const { return ::access(path_.c_str(), R_OK) == 0; }

  // Returns the last lines, including lines from PATH.1 if PATH does not have enough. The next call
  // to more() continues after these lines.
  std::string last(std::uint64_t lines) {
    std::string text;
    if (open()) text = rest_of(fd_.get(), from_end(fd_.get()), &offset_);
    const auto count = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
    if (count < lines) {
      const OwnedFd before(open_file(path_ + ".1"));
      off_t unused = 0;
      if (before) text.insert(0, rest_of(before.get(), from_end(before.get()), &unused));
    }
    std::size_t begin = text.size();
    for (std::uint64_t i = 0; i <= lines && begin != std::string::npos; ++i)
      begin = begin == 0 ? std::string::npos : text.rfind('\n', begin - 1);
    if (begin != std::string::npos) text.erase(0, begin + 1);
    return shown(text);
  }

  // Returns the complete lines that have been written since the last call, or an incomplete line
  // that has not changed for one second.
  std::string more() {
    std::string text;
    if (fd_) text = rest_of(fd_.get(), offset_, &offset_);
    struct stat mine{}, now{};
    const bool there = ::stat(path_.c_str(), &now) == 0;
    const bool same = fd_ && ::fstat(fd_.get(), &mine) == 0 && there && mine.st_ino == now.st_ino &&
                      mine.st_dev == now.st_dev;
    if (same && now.st_size < offset_) offset_ = 0;  // the file was truncated
    // Read the rest of the renamed file.
    if (there && !same && fd_) text += rest_of(fd_.get(), offset_, &offset_);
    if (there && !same && open()) text += rest_of(fd_.get(), 0, &offset_);
    quiet_polls_ = text.empty() ? quiet_polls_ + 1 : 0;
    return quiet_polls_ == line_polls ? rest() : shown(text);
  }

  // Returns the incomplete last line.
  std::string rest() {
    return partial_.empty() ? std::string() : printable(std::exchange(partial_, {})) + '\n';
  }

 private:
  // An incomplete line is shown if it has not changed for this many polls (one second).
  static constexpr int line_polls = 4;

  static int open_file(const std::string &path) {
    return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  }
  bool open() {
    fd_ = OwnedFd(open_file(path_));
    offset_ = 0;
    return static_cast<bool>(fd_);
  }

  static off_t from_end(int fd) {
    struct stat info{};
    return ::fstat(fd, &info) == 0 ? std::max<off_t>(info.st_size - max_tail_bytes, 0) : 0;
  }

  static std::string rest_of(int fd, off_t from, off_t *end) {
    std::string out, piece(read_bytes, '\0');
    for (*end = from;;) {
      const ssize_t n = ::pread(fd, piece.data(), piece.size(), *end);
      if (n <= 0) return out;
      out.append(piece, 0, static_cast<std::size_t>(n));
      *end += n;
    }
  }

  // Returns the complete lines and keeps the incomplete line at the end for the next call. If the
  // last call kept an incomplete line, the first line begins with its text.
  std::string shown(std::string_view text) {
    std::string out;
    partial_ += text;
    std::size_t begin = 0;
    for (std::size_t end; (end = partial_.find('\n', begin)) != std::string::npos; begin = end + 1)
      out += printable(std::string_view(partial_).substr(begin, end - begin)) + '\n';
    partial_.erase(0, begin);
    if (partial_.size() > max_line_bytes) out += printable(std::exchange(partial_, {})) + '\n';
    return out;
  }

  const std::string path_;
  OwnedFd fd_;
  off_t offset_ = 0;
  std::string partial_;
  int quiet_polls_ = 0;
};

// Prints why there is no log.
int no_log(const std::vector<ServerDef> &servers, const std::string &name) {
  std::vector<std::string> names;
  for (const ServerDef &def : servers) {
    names.push_back(def.name);
    if (def.name != name) continue;
    if (!def.url.empty())
      return complain("server " + name + " is remote (it has a URL), so it has no local log");
    return complain("server " + name + " has not written anything to its standard error yet",
                    exit_ok);
  }
  std::string all;
  for (const std::string &one : names) all += (all.empty() ? "" : ", ") + one;
  const std::string similar = suggestion(name, names);
  return complain("no server is named \"" + name + "\"; " +
                      (!similar.empty() ? similar
                       : all.empty()    ? "no servers are configured"
                                        : "configured servers: " + all),
                  exit_usage);
}

}  // namespace

int run_logs(const Arguments &arguments) {
  const auto loaded = load_to_look(arguments, Transports::none);
  if (!loaded) return report_config_errors(loaded.error());
  const auto &servers = loaded->profile.servers;
  const bool known = std::any_of(servers.begin(), servers.end(), [&](const ServerDef &def) {
    return def.name == arguments.name && def.url.empty();
  });
  // A server that was removed from the profile may still have a log. A name with a slash must not
  // be used as a path.
  const bool is_name = arguments.name.find('/') == std::string::npos;
  LogFile log(loaded->profile.state_dir + "/log/servers/" + arguments.name + ".log");
  const bool follow = arguments.records.follow;
  if (!is_name || (!log.exists() && !(known && follow))) return no_log(servers, arguments.name);
  const std::uint64_t lines = arguments.records.limit == 0 ? usual_lines : arguments.records.limit;
  std::string text = log.last(lines);
  if (!follow) text += log.rest();
  if (!write_stdout(text)) return exit_failed;
  while (follow) {
    ::usleep(log_poll_us);
    text = log.more();
    if (!text.empty() && !write_stdout(text)) return exit_failed;
  }
  return exit_ok;
}

}  // namespace bulkhead::program
