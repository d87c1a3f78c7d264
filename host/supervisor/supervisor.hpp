// The supervisor starts one process for each compartment, sends it its slice, connects the
// processes with links, and restarts processes that end. It holds everything that must outlive
// these processes: listening sockets, secrets, the log.
//
// It does not parse any data from clients or servers. Used on one thread.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/owned_fd.hpp"
#include "compartment/control.hpp"
#include "compartment/slice.hpp"
#include "host.hpp"
#include "link/channel.hpp"
#include "plugin/dial_rules.hpp"
#include "reactor/reactor.hpp"
#include "service/service_protocol.hpp"
#include "sources/snapshot.hpp"
#include "state/list_writer.hpp"
#include "state/pin_writer.hpp"

namespace bulkhead::program {

struct SupervisorHooks {
  std::function<void(LogLevel, std::string_view component, std::string_view text)> log;
  std::function<void()> on_ready;   // called once, when all compartments are ready or given up
  std::function<void()> on_status;  // called when status() has changed
};

// The service behind the service socket. If there is no control compartment,
// all members have their default values.
struct SupervisedService {
  int listener = -1;           // borrowed
  int metrics_listener = -1;   // borrowed; -1 if there is none
  AskService ask;              // Service::ask()
  std::function<void()> gone;  // called when the control compartment will not be restarted
};

class Supervisor {
 public:
  // A compartment is not restarted after this many consecutive starts in which it did not become
  // ready.
  static constexpr std::uint32_t max_failed_starts = 5;
  static constexpr std::uint64_t min_backoff_ms = 100;
  static constexpr std::uint64_t max_backoff_ms = 1'000;  // or the profile's retry_max_ms
  static constexpr std::uint64_t max_status_ms = 1'000;
  // Time-out for the endpoint's response to an approval request.
  static constexpr std::uint64_t max_approvals_ms = 2'000;
  static constexpr std::size_t max_approvals_asked = 32;  // unanswered requests
  // A compartment that does not acknowledge definitions within this time is killed.
  static constexpr std::uint64_t max_definitions_ms = 10'000;
  static constexpr std::uint64_t max_apply_ms = 20'000;  // for the endpoint's part of a reload
  static constexpr std::uint64_t max_start_ms = 30'000;  // plus plugin_init_ms per plugin
  // Added to twice shutdown_grace_ms.
  static constexpr std::uint64_t stop_margin_ms = 2'000;
  // A process that has run for this long is restarted immediately.
  static constexpr std::uint64_t steady_ms = 10'000;

  // The first slice is the endpoint. `state_dir` is the folder that contains the secrets.
  static Result<std::unique_ptr<Supervisor>> create(std::vector<Slice> slices,
                                                    std::string state_dir, SupervisorHooks hooks);
  // Call before run().
  void set_service(SupervisedService service) { service_ = std::move(service); }
  ~Supervisor();  // ends all remaining processes
  Supervisor(const Supervisor &) = delete;
  Supervisor &operator=(const Supervisor &) = delete;

  // Runs until request_stop() is called, the endpoint has finished, or the endpoint cannot start.
  // In the last case, returns an error with the reason. When this function returns, all processes
  // have exited.
  Result<void> run();
  // Thread-safe and async-signal-safe.
  void request_stop() noexcept;

  // Applies a new set of slices. Compartments with the same plugins keep running and receive the
  // definitions of their servers; new compartments start, changed compartments are replaced, and
  // compartments that are no longer needed are stopped. Then the endpoint applies its profile (see
  // Host::apply). The process of a replaced compartment finishes its calls while its replacement
  // runs, or before the replacement starts (see may_run_beside()). `done` is called once with the
  // report. While a change is in progress, another call fails with BH_E_LIMIT.
  void apply(std::vector<Slice> slices, std::function<void(Result<ApplyReport>)> done);

  Reactor &reactor() noexcept { return *reactor_; }
  // The endpoint's last report on servers and plugins. The endpoint sends a report whenever a state
  // changes.
  const HostStatus &status() const noexcept { return status_; }
  // Calls `done` when status() is current: after the endpoint's report, but after max_status_ms at
  // the latest, or immediately if there is no endpoint.
  void ask_status(std::function<void()> done);
  std::vector<CompartmentStatus> compartments() const;
  // Forwards an approval request to the endpoint and the response to `done`, without parsing
  // either. Calls `done` once. Fails with BH_E_UNAVAILABLE if there is no endpoint or no response
  // within max_approvals_ms, and with BH_E_LIMIT if too many requests are pending.
  void ask_approvals(std::uint32_t request, std::string_view value,
                     std::function<void(Result<std::string>)> done);

 private:
  struct Child;
  struct SecretJob;
  // A pending approval request.
  struct ApprovalJob {
    Supervisor *supervisor = nullptr;
    std::uint64_t number = 0, timer = 0;
    std::function<void(Result<std::string>)> done;
  };
  Supervisor(std::vector<Slice> slices, std::string state_dir, SupervisorHooks hooks);

  Result<void> start(Child &child);
  std::unique_ptr<Child> new_child(Slice slice);
  int descriptor_for(const Child &child);
  bool watch(Child &child);
  void kill_unwatched(Child &child);
  void restart(Child &child);
  void join(Child &child);
  void on_trunk_lost(Child &child, std::uint64_t number);
  void restart_unhealthy(std::string_view name);
  void on_frame(Child &child, const link::Frame &frame, std::string_view payload);
  void on_request(Child &child, const link::Frame &frame, std::string_view payload);
  void on_secret(SecretJob &job);
  void on_service_request(Child &child, const link::Frame &frame, std::string_view payload,
                          const OwnedFd &fd);
  void answer_service(Child &child, link::Frame frame, const ServiceAnswer &answer);
  void check_all_ready();
  void notify_status();
  static CompartmentStatus status_of(const Child &child);
  void end(Child &child);
  void set_deadline(Child &child);
  void ping_all();
  void apply_to(Child &child, Slice slice);
  bool may_run_beside(const Child &child, const Slice &next) const;
  void start_beside(Child &child, Slice next);
  void remove_ended();
  void restart_if_wanted(Child &child, bool was_retired);
  void on_definitions_taken(Child &child, std::uint64_t number);
  void on_awaited(Child &child, const std::string &failure);
  void on_applied(const link::Frame &frame, std::string_view payload);
  void create_writers();
  void on_pins(std::string_view payload);
  void on_list(std::string_view payload);
  void on_approvals(const link::Frame &frame, std::string_view payload);
  void finish_approvals(std::uint64_t number, Result<std::string> answer);
  void refuse_approvals();
  void finish_apply(Result<ApplyReport> result);
  void send_apply();
  void on_log(Child &child, bool over);
  bool may_log(Child &child, std::size_t bytes);
  void log_dropped_lines(Child &child);
  std::string log_component(const Child &child, const std::string &component) const;
  void ended(Child &child);
  void schedule(Child &child);
  void give_up(Child &child, const std::string &reason);
  void report_given_up(const Child &child);
  void send_telemetry_wants(const Child &child);
  void make_hidden_folders() const;
  void stop_all();
  void stop_others();
  bool has_instance(const Child &child, const std::string &instance) const;
  bool signs(const Child &child, const std::string &instance) const;
  Result<OwnedFd> on_socket_request(const Child &child, const link::Frame &frame,
                                    std::string_view payload);
  Result<OwnedFd> listen(const Child &child, const control::Listen &wanted);
  void log(LogLevel level, std::string_view component, std::string_view text) const;

  const std::string state_dir_;
  const SupervisorHooks hooks_;
  SupervisedService service_;
  std::shared_ptr<const pid_t> metrics_given_;  // the process that received the metrics listener
  const std::string sealing_key_;               // seals the session ids that clients hold
  // State that an endpoint process leaves to its replacement. The supervisor never reads it.
  OwnedFd ledger_;
  std::list<SecretJob> secret_jobs_;  // the reactor's pool uses it until its threads end
  std::unique_ptr<PinWriter> pins_;   // also used by the reactor's pool until its threads end
  std::unique_ptr<ListWriter> lists_;
  std::unique_ptr<Reactor> reactor_;
  std::vector<std::unique_ptr<Child>> children_;  // the endpoint is first
  std::map<std::string, OwnedFd> listeners_;      // by sockaddr
  std::vector<std::string> socket_files_;
  DialRules dial_rules_;
  HostStatus status_;
  std::vector<std::function<void()>> status_asked_;
  std::map<std::uint64_t, ApprovalJob> approvals_asked_;  // by request number
  std::uint64_t last_approvals_ = 0;
  std::function<void(Result<ApplyReport>)> apply_done_;
  std::uint64_t apply_number_ = 0;  // for the current change, or the last change
  std::uint64_t apply_timer_ = 0, status_timer_ = 0;
  std::uint64_t last_trunk_ = 0;
  Result<void> outcome_;
  bool all_ready_ = false, status_known_ = false, stopping_ = false, done_ = false;
  std::atomic<bool> stop_requested_{false};
};

}  // namespace bulkhead::program
