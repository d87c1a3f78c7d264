// A host for a command that asks something and ends: no transports, answers to a LocalSession.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "command_line/arguments.hpp"
#include "common/logger.hpp"
#include "host.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {

LogLevel level_named(std::string_view name) noexcept;

// Starts the profile's servers and waits until each has answered or failed; stops them when
// destroyed. Progress is shown on a terminal.
class ShortRun {
 public:
  explicit ShortRun(const Arguments &arguments);
  ~ShortRun();
  ShortRun(const ShortRun &) = delete;
  ShortRun &operator=(const ShortRun &) = delete;

  // Keeps only these servers of the profile.
  static void keep_only(Profile &profile, std::string_view server);
  // Names of all servers in the profile, builtin ones included.
  static std::vector<std::string> server_names(const Profile &profile);

  // Gets what the servers list; before start().
  void on_list(std::function<void(const ListNews &)> fn) { on_list_ = std::move(fn); }
  // An error is a line for people.
  Result<void> start(Profile profile);
  // At most the longest connect time-out of the profile, and a little.
  void wait_settled();
  Host &host() { return *host_; }

 private:
  void show_progress();

  Logger logger_;
  std::function<void(const ListNews &)> on_list_;
  std::unique_ptr<Host> host_;
  std::uint64_t settle_ms_ = 0;
  bool waiting_ = false, progress_pending_ = false;
};

}  // namespace bulkhead::program
