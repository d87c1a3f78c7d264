#include "gateway/supervised_gateway.hpp"

#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/signals.hpp"
#include "gateway/gateway_front.hpp"
#include "profile/difference.hpp"
#include "profile/policy_mark.hpp"
#include "profile/protected_paths.hpp"
#include "service/service.hpp"
#include "shared/local_clients.hpp"
#include "sources/profile_source.hpp"
#include "supervisor/plan.hpp"
#include "supervisor/supervisor.hpp"
#include "swap/plugin_swaps.hpp"
#include "swap/plugin_watch.hpp"
#include "trust/quarantine.hpp"

namespace bulkhead::program {
namespace {

// Prevents core dumps and access by other processes of this user, because the supervisor holds all
// secrets.
void protect_memory() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

class SupervisedGateway {
 public:
  SupervisedGateway(const Arguments &arguments, LoadedProfile loaded)
      : arguments_(arguments),
        front_(arguments, loaded),
        state_dir_(loaded.profile.state_dir),
        loaded_ms_(loaded.loaded_ms),
        holds_(loaded.holds),
        profile_(std::move(loaded.profile)) {
    profile_.policy_mark = first_policy_mark(profile_.policies);
  }

  int run() {
    protect_memory();
    front_.begin();
    socket_ = front_.open_service_socket();
    if (front_.is_serve() && socket_ != nullptr) local_clients_.emplace(socket_->path());
    if (local_clients_) local_clients_->add_to(profile_);
    // Requests for /metrics are parsed in the control compartment, which exists only if there is a
    // service socket.
    if (socket_ != nullptr) {
      auto metrics = front_.open_metrics(profile_.metrics_listen);
      if (!metrics) return front_.give_up(metrics.error());
      metrics_ = std::move(*metrics);
    } else if (!profile_.metrics_listen.empty()) {
      front_.log(LogLevel::warn, "service",
                 "gateway.metrics_listen is not served because there is no service socket");
    }
    facts_.log_level = static_cast<std::int32_t>(front_.log_level());
    facts_.eager = front_.is_serve();
    facts_.is_root = ::geteuid() == 0;
    facts_.service = socket_ != nullptr;
    facts_.fingerprint_key = random_key();
    SupervisorHooks hooks;
    hooks.log = [this](LogLevel level, std::string_view component, std::string_view text) {
      front_.log(level, component, text);
      if (service_ != nullptr) service_->on_log(level, component, text);
    };
    hooks.on_ready = [this] {
      ready_ = true;
      swaps_->hold(profile_);
      swaps_->remove_unused();
      watch_->follow(profile_);
    };
    hooks.on_status = [this] { on_status(); };
    hooks.on_failed_plugin = [this](const PluginUse &plugin, const std::string &reason) {
      const auto entry = quarantine_plugin(profile_, plugin, reason);
      if (entry && entry->sha256.empty()) return;  // a plugin of the program
      if (entry) profile_.plugin_trust.quarantined.push_back(entry->sha256);
      front_.log(
          LogLevel::error, "gateway",
          entry ? "the plugin " + entry->id + " " + entry->version +
                      " is quarantined; to permit it again, run `bulkhead plugin verify "
                      "--clear " +
                      entry->id + "`"
                : "the plugin of " + plugin.id + " cannot be quarantined: " + entry.error().text);
    };
    auto supervisor =
        Supervisor::create(plan_compartments(profile_, facts_), state_dir_, std::move(hooks));
    if (!supervisor) return front_.give_up(supervisor.error());
    supervisor_ = std::move(*supervisor);
    set_signalled(bh::callback<&Supervisor::request_stop>(supervisor_.get()));
    const auto watched = front_.watch_parent_process(
        supervisor_->reactor(), this,
        bh::fd_callback(this, [](SupervisedGateway &self) { self.supervisor_->request_stop(); }));
    if (!watched) return front_.give_up(watched.error());
    swaps_ = std::make_unique<PluginSwaps>(supervisor_->reactor(), state_dir_);
    watch_ = std::make_unique<PluginWatch>(
        supervisor_->reactor(), [this](const PluginSwapRequest &request, PluginWatch::Done done) {
          service_->ask(
              ServiceRequest::swap_plugin, to_bytes(request),
              [done = std::move(done)](const ServiceAnswer &answer) { done(answer.code); });
        });
    open_service();
    auto done = supervisor_->run();
    supervisor_->reactor().forget(this);
    set_signalled({});
    Console::get().progress("");
    watch_.reset();
    service_.reset();
    swaps_.reset();
    supervisor_.reset();
    return done ? exit_ok : front_.give_up(done.error());
  }

 private:
  void open_service() {
    service_ = std::make_unique<Service>(supervisor_->reactor(), arguments_,
                                         transports_of(arguments_), backend());
    watch_reload_signal(supervisor_->reactor(), bh::callback(this, [](SupervisedGateway &self) {
                          // service_ is null while ~Service() runs the loop.
                          if (self.service_ != nullptr) self.service_->reload();
                        }));
    if (socket_ == nullptr) return;
    SupervisedService service;
    service.listener = socket_->fd();
    service.metrics_listener = metrics_.get();
    service.ask = [this](ServiceRequest request, const std::string &value, ServiceReply reply) {
      if (service_ == nullptr)
        return reply(refuse_with(BH_E_UNAVAILABLE, "the gateway is stopping"));
      service_->ask(request, value, std::move(reply));
    };
    service.gone = [this] { socket_.reset(); };
    supervisor_->set_service(std::move(service));
  }

  ServiceBackend backend() {
    ServiceBackend backend;
    backend.status = [this](std::function<void(const ServiceStatus &)> done) {
      supervisor_->ask_status([this, done = std::move(done)] {
        ServiceStatus status{front_.process_facts(socket_ == nullptr ? "" : socket_->path()),
                             supervisor_->complete_status()};
        status.process.compartments = supervisor_->compartments();
        done(status);
      });
    };
    backend.apply = [this](LoadedProfile next, std::function<void(Result<ApplyReport>)> done) {
      const std::uint64_t loaded_ms = next.loaded_ms;
      const std::string project = next.project;
      const std::vector<ProfileHold> holds = next.holds;
      if (std::string wrong = PluginSwaps::watch_refusals(next.profile, holds); !wrong.empty()) {
        return done(fail(BH_E_DENIED, std::move(wrong)));
      }
      apply(std::move(next.profile), holds,
            [this, loaded_ms, project, holds, done = std::move(done)](Result<ApplyReport> report) {
              // If the endpoint is restarting, it starts with the new profile.
              if (report || report.error().code == BH_E_UNAVAILABLE) {
                loaded_ms_ = loaded_ms;
                holds_ = holds;
                swaps_->forget_unused(profile_);
                swaps_->hold(profile_);
                watch_->follow(profile_);
                front_.set_project(project);
              }
              done(std::move(report));
            });
    };
    backend.look = [this](std::function<void(const HostStatus &)> done) {
      supervisor_->ask_status([this, done = std::move(done)] { done(supervisor_->status()); });
    };
    backend.log = [this](LogLevel level, std::string_view text) {
      front_.log(level, "service", text);
    };
    backend.approvals = [this](ApprovalRequest request, const std::string &value,
                               std::function<void(Result<std::string>)> done) {
      supervisor_->ask_approvals(static_cast<std::uint32_t>(request), value, std::move(done));
    };
    backend.swap = [this](const PluginSwapRequest &request, Swapped done) {
      // The files in use have not been opened yet, so they could not be restored.
      if (!ready_) return done(fail(BH_E_LIMIT, std::string(still_starting)));
      swaps_->prepare(profile_, holds_, request,
                      [this, done = std::move(done)](Result<PluginChange> change) {
                        if (!change) return done(std::unexpected(change.error()));
                        swap(*change, done);
                      });
    };
    if (local_clients_) {
      backend.join = [this](std::string_view request) {
        // A program that joins now would lose its connection immediately.
        if (supervisor_->stopping()) return refuse_with(BH_E_UNAVAILABLE, "it is stopping");
        return local_clients_->answer(request, profile_, loaded_ms_, !ready_);
      };
    }
    return backend;
  }

  using Applied = std::function<void(Result<ApplyReport>)>;
  using Swapped = std::function<void(Result<PluginSwapped>)>;

  static void set_file(Profile *profile, const PluginChange &change, const PluginFile &file) {
    auto &uses = change.group == "policies"    ? profile->policies
                 : change.group == "telemetry" ? profile->telemetry
                                               : profile->tools;
    for (PluginUse &use : uses) {
      if (use.id == change.id) use.file = file;
    }
  }

  void swap(const PluginChange &change, const Swapped &done) {
    Profile next = profile_;
    set_file(&next, change, change.to.file);
    supervisor_->apply(
        plan_compartments(next, facts_), ApplyMode::swap,
        [this, change, done](const Result<ApplyReport> &report) { swapped(change, done, report); });
  }

  void swapped(const PluginChange &change, const Swapped &done, const Result<ApplyReport> &report) {
    // BH_E_UNAVAILABLE: the endpoint is restarting with the new profile.
    if (report || report.error().code == BH_E_UNAVAILABLE) {
      set_file(&profile_, change, change.to.file);
      const PluginSwapped answer = swaps_->in_use(change);
      return report ? done(answer) : done(std::unexpected(report.error()));
    }
    const Error error = report.error();
    if (error.code != BH_E_INVALID) return done(std::unexpected(error));
    if (supervisor_->stopped_former()) set_file(&profile_, change, swaps_->restored(change));
    supervisor_->apply(
        plan_compartments(profile_, facts_), ApplyMode::restore,
        [done, error](const Result<ApplyReport> &) { done(std::unexpected(error)); });
  }

  void apply(Profile next, const std::vector<ProfileHold> &holds, Applied done) {
    if (local_clients_) local_clients_->add_to(next);
    swaps_->apply_to(&next, holds);
    // Keep the current values of settings that cannot be changed at run time. The endpoint also
    // checks this, but only for its own settings; directories and services belong to other
    // compartments. Policies are an exception, because only the endpoint knows whether a policy
    // accepts new rules at run time.
    const std::vector<std::string> fixed = keep_fixed(profile_, &next, true);
    next.policy_mark = next_policy_mark(profile_.policy_mark, profile_.policies, next.policies);
    supervisor_->apply(plan_compartments(next, facts_), ApplyMode::change,
                       [this, next, fixed, done = std::move(done)](Result<ApplyReport> report) {
                         applied(next, fixed, std::move(report), done);
                       });
  }

  void applied(Profile next, const std::vector<std::string> &fixed, Result<ApplyReport> report,
               const Applied &done) {
    if (report) {
      std::erase_if(report->needs_restart,
                    [](const std::string &line) { return !line.starts_with("policies."); });
      const std::vector<std::string> refused = report->needs_restart;
      report->needs_restart.insert(report->needs_restart.end(), fixed.begin(), fixed.end());
      const bool kept = restore_policies(refused, &next);
      report->policy_mark = next.policy_mark;
      report->policy = next.policy_mark.generation != profile_.policy_mark.generation
                           ? next.policy_mark.changes
                           : std::vector<std::string>();
      profile_ = std::move(next);
      const bool fewer = forget_missing(&profile_);
      // If the endpoint is restarted, it must start with the rules that are in force.
      if (kept || fewer) return apply_again(std::move(report), done);
    } else if (report.error().code == BH_E_INVALID) {
      // A process that is restarted must not start with a profile that the endpoint has rejected.
      // The plugins of that profile may still run.
      protect_also(next, &profile_);
      return apply_again(std::move(report), done);
    } else if (report.error().code == BH_E_UNAVAILABLE) {
      profile_ = std::move(next);  // the endpoint is restarting with this profile
      forget_missing(&profile_);
    }
    done(std::move(report));
  }

  // Applies profile_ to all compartments, and then reports the result of the first attempt, which
  // is `report`.
  void apply_again(Result<ApplyReport> report, const Applied &done) {
    supervisor_->apply(
        plan_compartments(profile_, facts_), ApplyMode::restore,
        [this, report = std::move(report), done](const Result<ApplyReport> &restored) {
          if (!restored && restored.error().code != BH_E_UNAVAILABLE) {
            front_.log(
                LogLevel::error, "gateway",
                "the profile in force was not restored completely: " + restored.error().text);
          }
          done(report);
        });
  }

  // Restores the running configuration of each policy that cannot change its configuration at run
  // time. `refused` names these policies in the form "policies.ID: ...". Returns true if there are
  // any.
  bool restore_policies(const std::vector<std::string> &refused, Profile *next) const {
    bool any = false;
    for (PluginUse &use : next->policies) {
      const auto is_this = [&](const std::string &line) {
        return line.starts_with("policies." + use.id + ":");
      };
      if (std::none_of(refused.begin(), refused.end(), is_this)) continue;
      for (const PluginUse &was : profile_.policies) {
        if (was.id == use.id) use = was;
      }
      any = true;
    }
    if (any) {
      next->policy_mark = next_policy_mark(profile_.policy_mark, profile_.policies, next->policies);
    }
    return any;
  }

  void on_status() {
    if (!front_.is_serve() || !ready_ || front_.reported()) return;
    const HostStatus &status = supervisor_->status();
    if (!std::exchange(shown_, true)) front_.show_banner(status);
    bool settled = true;
    for (const ServerStatus &server : status.servers) {
      settled = settled && server.state != ServerState::connecting;
    }
    front_.show_progress(status, settled);
  }

  const Arguments arguments_;
  GatewayFront front_;
  const std::string state_dir_;
  std::uint64_t loaded_ms_;  // when the profile in force was loaded
  std::vector<ProfileHold> holds_;
  Profile profile_;  // the profile in force
  PlanFacts facts_;
  std::unique_ptr<ServiceSocket> socket_;
  std::optional<LocalClients> local_clients_;
  OwnedFd metrics_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<PluginSwaps> swaps_;
  std::unique_ptr<PluginWatch> watch_;
  std::unique_ptr<Service> service_;
  bool ready_ = false, shown_ = false;
};

}  // namespace

int run_supervised(const Arguments &arguments, LoadedProfile loaded) {
  return SupervisedGateway(arguments, std::move(loaded)).run();
}

}  // namespace bulkhead::program
