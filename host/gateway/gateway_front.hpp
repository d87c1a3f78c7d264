// Output and logging of serve and stdio, for single-process and supervised gateways: the log file,
// the banner, startup progress, and the process part of the status.
//
// Used on the gateway's thread, except log().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

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

  // Opens the log and raises the limit of open files. Log lines are held until the banner is
  // printed.
  void begin();
  // Thread-safe.
  void log(LogLevel level, std::string_view component, std::string_view text);
  // Returns null if no socket could be opened; the log has the reason.
  std::unique_ptr<ServiceSocket> open_service_socket();
  // If --parent-pid is set, calls `gone` when that process exits. `owner` is the owner of the
  // watch, see Reactor.
  Result<void> watch_parent_process(Reactor &reactor, const void *owner, bh::FdCallback gone);
  // Opens the listener of gateway.metrics_listen. Returns an empty descriptor if none is
  // configured. For stdio, or if --no-listen is set, an address in use causes only a warning,
  // because several such gateways may run.
  Result<OwnedFd> open_metrics(const std::string &address);
  // Prints the banner, followed by the held log lines. Call it once the gateway is listening.
  void show_banner(const HostStatus &status);
  // Shows startup progress. When `settled` is set, shows the server table once; subsequent calls do
  // nothing.
  void show_progress(const HostStatus &status, bool settled);
  bool reported() const noexcept { return reported_; }
  // Reports why the gateway cannot start or why it ended. Returns an exit code.
  int give_up(Error error);

  ProcessFacts process_facts(std::string socket) const;

 private:
  void open_log();

  const bool is_serve_;
  const std::string config_, project_, state_dir_;
  std::string metrics_;                // the TCP address of /metrics
  std::string http_id_, http_config_;  // of the first HTTP transport
  const std::vector<std::string> notes_;
  const int parent_pid_;
  const bool no_listen_;
  OwnedFd parent_;  // readable when the parent has exited
  const std::uint64_t started_ms_;
  Logger logger_;
  std::atomic<bool> reported_{false};
};

}  // namespace bulkhead::program
