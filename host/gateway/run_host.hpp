// A host for commands that send a few requests and exit. It has no transports; its client is a
// LocalSession.
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

// Starts the profile's servers and waits until each is ready or has failed; the destructor stops
// them. Shows progress on a terminal.
class ShortRun {
 public:
  explicit ShortRun(const Arguments &arguments);
  ~ShortRun();
  ShortRun(const ShortRun &) = delete;
  ShortRun &operator=(const ShortRun &) = delete;

  // Removes all other servers from the profile.
  static void keep_only(Profile &profile, std::string_view server);
  // Returns the names of all servers in the profile, including builtin servers.
  static std::vector<std::string> server_names(const Profile &profile);

  // Sets the receiver of servers' lists. Call it before start().
  void on_list(std::function<void(const ListNews &)> fn) { on_list_ = std::move(fn); }
  // The error is one line for the user.
  Result<void> start(Profile profile);
  // Waits no longer than the longest connect time-out in the profile plus a margin.
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
