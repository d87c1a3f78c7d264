// Implements the user interface of `serve` and `stdio`: the log file, the banner, the startup
// progress, and the process information shown by `status`. Used by single-process and supervised
// gateways.
//
// Only log() is thread-safe. All other functions must be called on the gateway's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/cpp/callback.hpp"
#include "command_line/arguments.hpp"
#include "common/logger.hpp"
#include "host.hpp"
#include "service/service_protocol.hpp"
#include "service/service_socket.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {

class GatewayFront {
 public:
  GatewayFront(const Arguments &arguments, const LoadedProfile &loaded);

  bool is_serve() const noexcept { return is_serve_; }
  LogLevel log_level() const { return logger_.level(); }

  // Opens the log file and raises the limit on open files. With `serve`, log lines for standard
  // error are held back until the banner is printed.
  void begin();
  void log(LogLevel level, std::string_view component, std::string_view text);
  // Returns null if the socket cannot be created; the reason is logged.
  std::unique_ptr<ServiceSocket> open_service_socket();
  // Calls `gone` when the process given by --parent-pid exits. Returns an error if that process is
  // not the parent. Without --parent-pid, does nothing. `owner` owns the watch (see Reactor).
  Result<void> watch_parent_process(Reactor &reactor, const void *owner, bh::FdCallback gone);
  // Opens the listener for gateway.metrics_listen. Returns an empty descriptor if no address is
  // configured. With `stdio` or --no-listen, several gateways may have the same configuration, so a
  // failure, for example because the address is already in use, only causes a warning.
  Result<OwnedFd> open_metrics(const std::string &address);
  // With `serve`, prints the banner, followed by the log lines that were held back. Called as soon
  // as the gateway is listening.
  void show_banner(const HostStatus &status);
  // With `serve`, shows startup progress. The first call in which `settled` is true shows the table
  // of servers; later calls do nothing.
  void show_progress(const HostStatus &status, bool settled);
  bool reported() const noexcept { return reported_; }
  // Reports why the gateway cannot start or had to stop. Returns the exit code.
  int give_up(Error error);

  ProcessFacts process_facts(std::string socket) const;
  // Sets the project file after a reload.
  void set_project(std::string file) { project_ = std::move(file); }

 private:
  void open_log();

  const bool is_serve_;
  const std::string config_, state_dir_;
  std::string project_;
  std::string metrics_;                // TCP address of /metrics
  std::string http_id_, http_config_;  // of the first transport
  const std::vector<std::string> notes_;
  const int parent_pid_;
  const bool no_listen_;
  OwnedFd parent_;  // becomes readable when the parent exits
  const std::uint64_t started_ms_;
  Logger logger_;
  std::atomic<bool> reported_{false};
};

}  // namespace bulkhead::program
