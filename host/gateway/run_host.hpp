// Runs a host for commands that send a few requests and exit. The host has no transports; its only
// client is a LocalSession.
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

// Starts the servers of a profile, waits until each is ready or has failed, and stops them in the
// destructor. Shows progress on a terminal.
class ShortRun {
 public:
  explicit ShortRun(const Arguments &arguments);
  ~ShortRun();
  ShortRun(const ShortRun &) = delete;
  ShortRun &operator=(const ShortRun &) = delete;

  // Removes all other servers and tools plugins from the profile.
  static void keep_only(Profile &profile, std::string_view server);
  // Returns the names of all servers in the profile, including tools plugins.
  static std::vector<std::string> server_names(const Profile &profile);

  // Sets the callback for lists that servers return. Must be called before start().
  void on_list(std::function<void(const ListNews &)> fn) { on_list_ = std::move(fn); }
  // An error is one line for the user.
  Result<void> start(Profile profile);
  // Waits at most for the longest connect timeout in the profile, plus a margin.
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
