#include "shared/joined_stdio.hpp"

#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <utility>
#include <vector>

#include "bulkhead/cpp/callback.hpp"
#include "bulkhead/cpp/clock.hpp"
#include "common/complain.hpp"
#include "common/paths.hpp"
#include "common/signals.hpp"
#include "pipe/pipe_host.hpp"
#include "relay/plugins.hpp"
#include "sources/profile_source.hpp"

extern char **environ;

namespace bulkhead::program {
namespace {

// Starts `bulkhead serve --no-listen` with the profile that these arguments select. Returns the
// process ID, or -1 if the program cannot be started.
pid_t start_own_gateway(const Arguments &arguments) {
  std::vector<std::string> words{"bulkhead", "serve", "--no-listen", "--parent-pid",
                                 std::to_string(::getpid())};
  const auto add = [&](const char *option, const std::string &value) {
    if (value.empty()) return;
    words.emplace_back(option);
    words.push_back(value);
  };
  add("--config", arguments.config);
  add("--project", arguments.project);
  add("--log-level", arguments.log_level);
  for (const std::string &dir : arguments.plugin_dirs) add("--plugin-dir", dir);
  if (arguments.no_project) words.emplace_back("--no-project");
  std::vector<char *> argv;
  for (std::string &word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) complain(describe_errno("cannot start a gateway", error));
  return error == 0 ? pid : -1;
}

class JoinedStdio {
 public:
  JoinedStdio(const Arguments &arguments, RunningGateway gateway, std::uint64_t message_bytes)
      : arguments_(arguments), gateway_(std::move(gateway)), message_bytes_(message_bytes) {}

  int run() {
    pipe::Options options;
    options.transport = relay::stdio_entry;
    options.connector = relay::vsock_entry;
    options.endpoint = "the gateway";
    options.definition = [this](std::string_view process_name) { return definition(process_name); };
    options.message_bytes = message_bytes_;
    options.queue_bytes = 2 * message_bytes_ + (8u << 20);
    options.limits.max_waiting_bytes = 2 * message_bytes_;
    options.log = [](std::int32_t, std::string_view text) { complain(text); };
    auto host = pipe::PipeHost::create(std::move(options));
    if (!host) return complain(host.error().text);
    set_signalled(bh::callback<&pipe::PipeHost::request_stop>(host->get()));
    const auto done = (*host)->run();
    set_signalled({});
    return done ? exit_ok : complain(done.error().text);
  }

 private:
  // Called for each attempt to connect. On every call except the first, the previous connection has
  // been lost.
  Result<std::string> definition(std::string_view process_name) {
    if (std::exchange(joined_before_, true) && !join_again()) {
      return fail(BH_E_UNAVAILABLE, "no running gateway has this configuration");
    }
    return gateway_.definition(process_name, message_bytes_);
  }

  // Reads the profile again and joins a running gateway with the same configuration. Returns true
  // on success.
  bool join_again() {
    if (own_pid_ > 0 && ::waitpid(own_pid_, nullptr, WNOHANG) == own_pid_) own_pid_ = -1;
    const auto loaded = load_checked(arguments_, Transports::stdio);
    if (!loaded) {
      if (!std::exchange(complained_, true)) report_config_errors(loaded.error());
      return false;
    }
    GatewaySearch search = find_running_gateway(loaded->profile);
    if (search.found) {
      gateway_ = *std::move(search.found);
      lost_ms_ = 0;
      starts_ = 0;
      complained_ = false;
      return true;
    }
    const std::uint64_t now = bh::monotonic_ms();
    if (lost_ms_ == 0) lost_ms_ = now;
    const std::uint64_t wait_ms = search.starting ? max_start_wait_ms : own_after_ms + spread_ms();
    if (now - lost_ms_ < wait_ms) return false;
    lost_ms_ = now;  // if the started gateway does not become ready, another one is started later
    if (starts_ >= max_starts) return false;
    ++starts_;
    complain("the gateway has stopped; starting a new one for this client");
    own_pid_ = start_own_gateway(arguments_);
    return false;
  }

  static constexpr int max_starts = 5;  // since the last time a gateway was joined

  // Returns a delay that differs between processes. When a gateway exits, all of its clients lose
  // their connections at the same time. The client with the shortest delay starts a new gateway,
  // and the others join it.
  static std::uint64_t spread_ms() noexcept {
    return static_cast<std::uint64_t>(::getpid()) % 10 * 200;
  }

  const Arguments &arguments_;
  RunningGateway gateway_;
  const std::uint64_t message_bytes_;
  bool joined_before_ = false, complained_ = false;
  std::uint64_t lost_ms_ = 0;  // when the connection was lost; 0 if it is open
  int starts_ = 0;
  pid_t own_pid_ = -1;  // the gateway that this process has started
};

}  // namespace

int run_joined_stdio(const Arguments &arguments, RunningGateway gateway, const Limits &limits) {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);  // the process memory contains the token
  return JoinedStdio(arguments, std::move(gateway), limits.message_bytes).run();
}

}  // namespace bulkhead::program
