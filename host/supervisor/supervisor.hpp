// Runs the compartments of a gateway: starts a process for each, sends it its slice, connects the
// processes with links, and restarts processes that exit.
//
// The supervisor holds everything that must outlive these processes, such as listening sockets,
// secrets and the log. The only data from clients or servers that it parses are the tool
// definitions that PinStore stores. Used on one thread.
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
  // Called once, when every compartment is ready or has been given up.
  std::function<void()> on_ready;
  std::function<void()> on_status;  // called after status() has changed
  // Called if the process of a compartment with a single plugin crashes while it starts: at once if
  // the process was to replace another one (also if the plugin did not return from loading),
  // otherwise when the compartment is given up. Not called for a process that is merely slow.
  std::function<void(const PluginUse &plugin, const std::string &reason)> on_failed_plugin;
};

// The service that handles requests from the control compartment. If there is no control
// compartment, all members have their default values.
struct SupervisedService {
  int listener = -1;           // borrowed
  int metrics_listener = -1;   // borrowed; -1 for none
  AskService ask;              // Service::ask()
  std::function<void()> gone;  // called if the control compartment has been given up
};

// What Supervisor::apply() applies.
enum class ApplyMode : std::uint8_t {
  change,
  // The former profile, after a change was rejected, or a correction of a change that was applied.
  restore,
  // A profile with another file of one plugin. The process with the former file continues to
  // receive calls until the new one is ready and, for a policy, has its state; or, if both versions
  // must not run at the same time, until the new one has been loaded and configured. If the new one
  // fails, nothing is changed; if it fails after the former one was stopped, that one must be
  // restored.
  swap,
};

class Supervisor {
 public:
  // A compartment is given up after this many consecutive failed starts. A start fails if the
  // process exits before it is ready.
  static constexpr std::uint32_t max_failed_starts = 5;
  static constexpr std::uint64_t min_backoff_ms = 100;
  // If the profile's retry_max_ms is shorter, it is used instead.
  static constexpr std::uint64_t max_backoff_ms = 1'000;
  static constexpr std::uint64_t max_status_ms = 1'000;
  // Timeout for the endpoint's response to a request about approvals.
  static constexpr std::uint64_t max_approvals_ms = 2'000;
  static constexpr std::size_t max_approvals_asked = 32;  // limit for requests without a response
  // A compartment that does not acknowledge new server settings within this time is killed.
  static constexpr std::uint64_t max_settings_ms = 10'000;
  // Timeout for the endpoint's part of a reload.
  static constexpr std::uint64_t max_apply_ms = 20'000;
  static constexpr std::uint64_t max_start_ms = 30'000;  // plus plugin_init_ms for each plugin
  static constexpr std::uint64_t max_swap_ms = 5'000;    // the same for a swapped plugin
  // To stop, a process is given this much time in addition to a multiple of shutdown_grace_ms.
  static constexpr std::uint64_t stop_margin_ms = 2'000;
  // Limit for the former processes of a policy that still have requests to answer.
  static constexpr std::ptrdiff_t max_leaving_policies = 3;
  // A process that has run for at least this long before it exits is restarted without a delay.
  static constexpr std::uint64_t steady_ms = 10'000;

  // The first slice must be the endpoint's. `state_dir` is the directory that contains the secrets.
  static Result<std::unique_ptr<Supervisor>> create(std::vector<Slice> slices,
                                                    std::string state_dir, SupervisorHooks hooks);
  // Must be called before run().
  void set_service(SupervisedService service) { service_ = std::move(service); }
  ~Supervisor();  // kills all remaining processes
  Supervisor(const Supervisor &) = delete;
  Supervisor &operator=(const Supervisor &) = delete;

  // Runs until request_stop() is called, the endpoint has finished, a compartment reports a failure
  // while the gateway is starting, or the endpoint is given up. In the last two cases, returns the
  // error. All processes have exited when this function returns, unless a process cannot be started
  // initially; this error is returned immediately.
  Result<void> run();
  // Thread-safe and async-signal-safe.
  void request_stop() noexcept;
  // Returns true once a stop was requested or the endpoint has finished.
  bool stopping() const noexcept { return stopping_ || stop_requested_.load(); }

  // Applies new slices. A compartment whose plugins are unchanged keeps running and receives the
  // new definitions of its servers. Other compartments are started, replaced or stopped. Then the
  // endpoint applies its profile (see Host::apply).
  //
  // While a replaced process finishes its calls, its replacement may already run; see
  // may_run_beside(). Changed policies are put into use together, when all of them are ready, have
  // the states of the former ones (bh.state/1), and the endpoint accepts its profile; until then,
  // and if one of them fails, the former ones decide.
  // A policy that may not run beside its former process is restarted first; its requests are
  // rejected until it is ready.
  //
  // `done` is called once with the report. If another change is in progress, or the gateway is
  // starting or stopping, `done` receives BH_E_LIMIT.
  //
  // If the slices are rejected (BH_E_INVALID), the compartments of the former profile are not
  // stopped. The caller must then apply the slices of the former profile again, with
  // ApplyMode::restore.
  void apply(std::vector<Slice> slices, ApplyMode mode,
             std::function<void(Result<ApplyReport>)> done);

  // Returns true if the current or last swap has stopped the former process before the new version
  // was in use. If that swap is rejected, the former version must be started again from a copy,
  // because its file may have been replaced.
  bool stopped_former() const noexcept { return stopped_former_; }

  Reactor &reactor() noexcept { return *reactor_; }
  // Returns the endpoint's last report on servers and plugins. The endpoint sends a report whenever
  // a state changes.
  const HostStatus &status() const noexcept { return status_; }
  // The same, with the files and versions of the plugins that run in other processes.
  HostStatus complete_status() const;
  // Requests a new report from the endpoint and calls `done` once status() returns that report.
  // `done` is called after max_status_ms at the latest, and immediately if the endpoint is not
  // ready.
  void ask_status(std::function<void()> done);
  std::vector<CompartmentStatus> compartments() const;
  // Sends a request about approvals to the endpoint and passes the response to `done`. Neither is
  // parsed here. `done` is called once. It receives BH_E_UNAVAILABLE if the endpoint is not running
  // or does not respond within max_approvals_ms, and BH_E_LIMIT if too many requests are pending.
  void ask_approvals(std::uint32_t request, std::string_view value,
                     std::function<void(Result<std::string>)> done);

 private:
  struct Child;
  struct SecretJob;
  // A pending request about approvals.
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
  bool connect(Child &child);
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
  void end(Child &child, bool replaced = false);
  void set_deadline(Child &child);
  void ping_all();
  void apply_to(Child &child, Slice slice);
  std::ptrdiff_t leaving(std::string_view name) const;
  bool may_run_beside(const Child &child, const Slice &next) const;
  void start_beside(Child &child, Slice next);
  std::string cannot_swap(const std::vector<Slice> &slices) const;
  std::string cannot_move_state(const std::vector<Slice> &slices) const;
  bool has_candidate(const Child *former = nullptr) const;
  bool has_next_policy() const;
  static Slice strict(Slice slice);
  void start_candidate(Child &child, Slice next);
  void end_trial(Child &candidate);
  void put_into_use(Child &candidate);
  void drop(Child &candidate, const std::string &reason);
  void reject(std::string reason);
  void commit();
  void use_endpoint_slice();
  void remove_ended();
  void restart_if_wanted(Child &child, bool was_retired);
  void on_settings_taken(Child &child, std::uint64_t number);
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
  void report_plugin(const Child &child, const std::string &reason) const;
  void report_given_up(const Child &child);
  void send_telemetry_wants(const Child &child);
  void make_hidden_folders() const;
  void stop_all();
  void stop_others();
  bool has_instance(const Child &child, const std::string &instance) const;
  static bool has_instance(const Slice &endpoint, const Child &child, const std::string &instance);
  bool signs(const Child &child, const std::string &instance) const;
  Result<OwnedFd> on_socket_request(const Child &child, const link::Frame &frame,
                                    std::string_view payload);
  Result<OwnedFd> listen(const Child &child, const control::Listen &wanted);
  void log(LogLevel level, std::string_view component, std::string_view text) const;

  const std::string state_dir_;
  const SupervisorHooks hooks_;
  SupervisedService service_;
  // Identifies the process that received the metrics listener.
  std::shared_ptr<const pid_t> metrics_given_;
  const std::string sealing_key_;  // seals the session IDs that clients hold
  // State that the endpoint leaves behind for its replacement. The supervisor never reads it.
  OwnedFd ledger_;
  // Used by the reactor's pool threads, so they must be destroyed after the reactor.
  std::list<SecretJob> secret_jobs_;
  // These two are also used by the reactor's pool threads.
  std::unique_ptr<PinWriter> pins_;
  std::unique_ptr<ListWriter> lists_;
  std::unique_ptr<Reactor> reactor_;
  std::vector<std::unique_ptr<Child>> children_;  // the endpoint is first
  std::unique_ptr<Slice> next_endpoint_;          // until the endpoint has accepted the change
  std::map<std::string, OwnedFd> listeners_;      // by sockaddr
  std::vector<std::string> socket_files_;
  DialRules dial_rules_;
  HostStatus status_;
  std::vector<std::function<void()>> status_asked_;
  std::map<std::uint64_t, ApprovalJob> approvals_asked_;  // by request number
  std::uint64_t last_approvals_ = 0;
  std::function<void(Result<ApplyReport>)> apply_done_;
  std::uint64_t apply_number_ = 0;  // of the current or last change
  std::uint64_t apply_timer_ = 0, status_timer_ = 0;
  std::uint64_t last_trunk_ = 0;
  Result<void> outcome_;
  bool all_ready_ = false, status_known_ = false, stopping_ = false, done_ = false;
  ApplyMode mode_ = ApplyMode::change;  // of the current or last change
  bool stopped_former_ = false;         // see stopped_former()
  std::atomic<bool> stop_requested_{false};
};

}  // namespace bulkhead::program
