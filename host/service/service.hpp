// Implements the service API and SIGHUP in the gateway: reloads the profile, lists and changes the
// connectors in the user layer, restarts servers and reports the status. Requests are typed values
// (service_protocol.hpp).
//
// Changes are applied one after another. If max_waiting changes are already queued, further changes
// are rejected. Files are read and written on the reactor's thread pool.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "command_line/arguments.hpp"
#include "host.hpp"
#include "reactor/reactor.hpp"
#include "service/service_protocol.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {

// The functions of the gateway that the service calls. They are always called on the reactor
// thread.
struct ServiceBackend {
  // Reports the state of the gateway and its process. Calls `done` once, immediately or later.
  std::function<void(std::function<void(const ServiceStatus &)> done)> status;
  // Applies a profile. Calls `done` once from the loop, immediately or later.
  std::function<void(LoadedProfile next, std::function<void(Result<ApplyReport>)> done)> apply;
  // Reports the state of the host.
  std::function<void(std::function<void(const HostStatus &)> done)> look;
  std::function<void(LogLevel level, std::string_view text)> log;
  // Forwards a request about approvals to the endpoint without parsing it. Calls `done` once.
  std::function<void(ApprovalRequest request, std::string value,
                     std::function<void(Result<std::string>)> done)>
      approvals;
  // Swaps a plugin or restores its version before the last swap. Calls `done` once from the loop,
  // immediately or later. Empty if plugins cannot be swapped.
  std::function<void(PluginSwapRequest request, std::function<void(Result<PluginSwapped>)> done)>
      swap;
  // Handles a program's request to use this gateway's servers. Empty if the gateway cannot be
  // shared.
  std::function<ServiceAnswer(std::string_view request)> join;
};

class Service {
 public:
  static constexpr std::size_t max_waiting = 8;
  // The response to a reload is sent when the servers have settled, or after this time at the
  // latest.
  static constexpr std::uint64_t settle_ms = 10'000;
  // After a rejected reload, log lines of policies in other processes are awaited for this time.
  static constexpr std::uint64_t log_wait_ms = 50;
  static constexpr std::size_t max_policy_errors = 100;  // further errors are only in the log

  // `arguments` are the arguments with which the running profile was loaded.
  Service(Reactor &reactor, Arguments arguments, Transports transports, ServiceBackend backend);
  ~Service();  // waits for the jobs on pool threads
  Service(const Service &) = delete;
  Service &operator=(const Service &) = delete;

  // Handles all requests except ServiceRequest::admit and ServiceRequest::metrics_listener. `value`
  // is untrusted.
  void ask(ServiceRequest request, std::string_view value, ServiceReply reply);
  // Must be called for each log line of a plugin. If a reload is rejected, the response contains
  // all errors that the policies have logged; the text that a plugin returns is limited to a few
  // hundred bytes.
  void on_log(LogLevel level, std::string_view component, std::string_view text);
  // Reloads the profile after SIGHUP. The result is only logged.
  void reload();

 private:
  struct Job;
  struct Listing;
  enum class What : std::uint8_t { reload, add, remove, restart, swap };

  void approvals(ApprovalRequest request, std::string_view value, ServiceReply reply);
  void list_connectors(ServiceReply reply);
  void add(std::string_view value, ServiceReply reply);
  void remove(std::string_view value, ServiceReply reply);
  void restart(std::string_view value, ServiceReply reply);
  void swap(std::string_view value, ServiceReply reply);
  std::unique_ptr<Job> new_job(What what, ServiceReply reply);
  void enqueue(std::unique_ptr<Job> job);
  void start_next();
  void start_swap(const Job &job);
  void prepared(Job &job);
  void applied(Job &job, Result<ApplyReport> report);
  void rejected(const Job &job);
  void wait_settled();
  void on_host_status(const HostStatus &status);
  void finish(ServiceAnswer answer);

  Reactor &reactor_;
  const Arguments arguments_;
  const Transports transports_;
  const ServiceBackend backend_;
  std::deque<std::unique_ptr<Job>> jobs_;          // the first job is in progress
  std::vector<std::string> logged_notes_;          // of the last reload; they are not logged again
  std::map<std::string, std::uint64_t> restarts_;  // ServerDef::restarts by server name
  std::uint32_t running_ = 0;                      // number of jobs on pool threads
  bool stopping_ = false;
  std::uint64_t timer_ = 0;
  // Expires with this object, so that results that arrive later are ignored.
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace bulkhead::program
