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

// Starts the servers in a profile; wait_settled() waits until each server is ready or has failed.
// The destructor stops the servers. On a terminal, progress is shown.
class ShortRun {
 public:
  explicit ShortRun(const Arguments &arguments);
  ~ShortRun();
  ShortRun(const ShortRun &) = delete;
  ShortRun &operator=(const ShortRun &) = delete;

  // Removes all servers and tools plugins except `server` from the profile.
  static void keep_only(Profile &profile, std::string_view server);
  // Returns the names of all servers in the profile, including tools plugins.
  static std::vector<std::string> server_names(const Profile &profile);

  // Sets the callback that receives the lists returned by servers. Must be called before start().
  void on_list(std::function<void(const ListNews &)> fn) { on_list_ = std::move(fn); }
  // On failure, the error is a single line of text for the user.
  Result<void> start(Profile profile);
  // Waits until the servers are ready or have failed, but no longer than the longest connect
  // timeout in the profile plus a margin.
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
