// What serve and stdio show and log, in one process or several: the log file, the banner, the
// progress of the start, the process's part of status.
//
// Thread: the gateway's, but for log().
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

  // Opens the log, and raises the limit of open files. What is logged waits for the banner.
  void begin();
  // Any thread.
  void log(LogLevel level, std::string_view component, std::string_view text);
  // Null: there is none, and the log says why.
  std::unique_ptr<ServiceSocket> open_service_socket();
  // Where the profile has /metrics read; nothing: it says nothing of that. For stdio, of which a
  // client may start several, a place that is taken is only warned about.
  Result<OwnedFd> open_metrics(const std::string &address);
  // It listens: the banner, and the log from now on. Once.
  void show_banner(const HostStatus &status);
  // How far the start is; once `settled`, the table of servers, and nothing from then on.
  void show_progress(const HostStatus &status, bool settled);
  bool reported() const noexcept { return reported_; }
  // Says why there is no gateway, or none any more; an exit code.
  int give_up(const Error &error);

  ProcessFacts process_facts(std::string socket) const;

 private:
  void open_log();

  const bool is_serve_;
  const std::string config_, project_, state_dir_;
  std::string metrics_;                // where they are read over TCP
  std::string http_id_, http_config_;  // of the first transport
  const std::vector<std::string> notes_;
  const std::uint64_t started_ms_;
  Logger logger_;
  std::atomic<bool> reported_{false};
};

}  // namespace bulkhead::program
