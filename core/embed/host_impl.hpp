// The Host behind core/host.hpp: plugins on one side, the router on the other.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/draft/control.h"
#include "bulkhead/abi/ext/draft/event.h"
#include "bulkhead/abi/ext/draft/http.h"
#include "bulkhead/abi/ext/draft/resume.h"
#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/abi/ext/transport.h"
#include "embed/policy_stack.hpp"
#include "embed/rewrite_checks.hpp"
#include "embed/seal.hpp"
#include "host.hpp"
#include "layers/definitions.hpp"
#include "link/near.hpp"
#include "link/near_policy.hpp"
#include "link/near_telemetry.hpp"
#include "plugin/instance.hpp"
#include "reactor/reactor.hpp"
#include "route/router.hpp"
#include "sandbox/spawn.hpp"

namespace bulkhead {

class HostImpl;

// What the host knows of one plugin instance; Instance::user points here.
struct Part {
  HostImpl *host = nullptr;
  PluginUse use;
  std::unique_ptr<Instance> instance;
  std::string failure;             // why it is not running
  bool starts_children = false;    // the connector of servers with a command
  bool keeps_records = false;      // telemetry: what it keeps is signed
  bool finished = false;           // a transport: no client can come any more
  std::unique_ptr<ClientEnd> end;  // a transport: where its sessions' messages go
  Upstream *upstream = nullptr;    // a tools plugin: the server that it is
  std::string compartment;         // where it runs, if not here
  // What stands for it then, if it is a policy or telemetry plugin.
  std::unique_ptr<link::NearPolicy> near_policy;
  std::unique_ptr<link::NearTelemetry> near_telemetry;
  // As the profile has it, for log lines and what get_ext gives.
  bool granted(std::string_view grant) const noexcept;
};

// The tables that plugins get from get_ext(); their ctx is the Instance.
class HostTables {
 public:
  explicit HostTables(const bh_limits *limits);
  const void *find(std::string_view id, const Part *part) const noexcept;  // null: not offered

 private:
  bh_host_transport transport_;
  bh_host_connector connector_;
  bh_host_tools tools_;
  bh_host_policy policy_;
  bh_host_http http_;
  bh_host_event event_;
  bh_host_telemetry telemetry_;
  bh_host_resume resume_;
  bh_host_control control_;
};

bh_host_resume resume_functions() noexcept;    // resume_table.cpp
bh_host_control control_functions() noexcept;  // control_table.cpp

class HostImpl final : public Host,
                       private link::NearEvents,
                       private link::PolicyEvents,
                       private link::TelemetryEvents {
 public:
  HostImpl(Profile profile, HostOptions options);
  ~HostImpl() override;

  Result<void> load();  // what create() does beyond the constructor

  Result<void> start() override;
  void run() override;
  void request_stop() noexcept override;
  Result<ApplyReport> apply(Profile next) override;
  Result<ApplyReport> apply(Profile next, std::map<std::string, RemoteUse> remote) override;
  bool drained() const override;
  void attach(const std::string &compartment, OwnedFd trunk) override;
  void give_up(const std::string &compartment, const std::string &reason) override;
  void telemetry_wants(const std::string &compartment, std::uint32_t needs) override;
  ApprovalList approvals(std::uint64_t watch_ms) override;
  Result<void> answer_approval(const ApprovalAnswer &answer) override;
  HostStatus status() const override;
  Reactor &reactor() noexcept override { return *reactor_; }
  bool settled() const override { return router_->views().all_settled(); }
  std::unique_ptr<LocalClient> connect(
      std::function<void(std::string_view message)> on_message) override;
  bool run_until(const std::function<bool()> &done, std::uint64_t timeout_ms) override;

  // For the extension tables.
  Router &router() noexcept { return *router_; }
  const Sealer &sealer() const noexcept { return sealer_; }
  std::uint32_t epoch() const noexcept { return options_.epoch; }
  bool reopens_sessions() const noexcept;
  // A policy has answered later. `who`: its self; null: it is known that this one was asked.
  void policy_answered(std::uint64_t exchange, Gate::Decision decision, const void *who = nullptr);
  void policy_shown(std::uint64_t question, bool listed, const void *who = nullptr);
  bool on_loop_thread() const noexcept { return std::this_thread::get_id() == thread_; }
  void transport_finished(Part &part);
  // The service that answers bh.host.http/1, loaded when first asked for; null: there is none.
  const bh_http_service *http_service(void **self);
  const Profile &profile() const noexcept { return profile_; }
  // bh.host.control/1: see control_table.cpp.
  bh_status replace_servers(Part &part, std::string_view definitions, std::uint64_t wait_ms,
                            bh_control_done done, void *arg, bh_error *error);

 private:
  using Parts = std::vector<std::unique_ptr<Part>>;
  // Servers that a plugin has given, beside those of the profile.
  struct Given {
    const Part *part = nullptr;
    std::vector<ServerDef> servers;
  };
  // One replace_servers whose `done` has not been called.
  struct Change {
    HostImpl *host = nullptr;
    Part *part = nullptr;
    GivenServers given;
    bool applied = false, over = false;
    std::uint64_t wait_ms = 0, timer = 0;
    ApplyReport report;
    bh_control_done done = nullptr;
    void *arg = nullptr;
  };

  Result<void> set_up();
  Result<void> add_parts(std::string_view group, const std::vector<PluginUse> &uses, Parts *parts);
  Result<void> use_policies();
  void use_policy_limits();
  std::vector<PluginUse> reloadable_policies(Profile *next) const;
  Result<bool> reload_policies(const std::vector<PluginUse> &uses);
  void watch_policies(bool wanted);
  void use_telemetry();
  void record_policy(const std::vector<std::string> &changes);
  void use_prints();
  Result<std::unique_ptr<Part>> make_part(const PluginUse &use, bool starts_children = false,
                                          bool keeps_records = false);
  Result<std::unique_ptr<Part>> make_part_or_link(std::string_view group, const PluginUse &use);
  bool connects_children(const std::string &plugin) const;
  SpawnOptions spawn_options() const;
  Result<void> bring_up(Part &part);
  Result<void> add_servers();
  ServerDef complete(const ServerDef &def) const;  // with what the core adds for connectors
  std::unique_ptr<Upstream> make_upstream(const ServerDef &def);
  std::unique_ptr<Upstream> make_tools_upstream(Part &part);
  void make_log_folder() const;
  // apply.cpp
  struct NextTools;
  Result<ApplyReport> exchange(Profile next, std::vector<ServerDef> servers);
  void use_tool_files(Profile *next, ApplyReport *report) const;
  void use_policy_mark(Profile *next, ApplyReport *report) const;
  Result<void> load_tools(const Profile &next, NextTools *out);
  NextUpstream next_server(const ServerDef &def, ApplyReport *report);
  NextUpstream next_tools(Part &part, bool fresh, ApplyReport *report);
  void end_left_parts();
  std::vector<ServerDef> all_servers(const Profile &profile,
                                     std::vector<std::string> *refused) const;
  // control_table.cpp
  void apply_changes();
  void refuse_taken(const std::vector<ServerDef> &servers, Change *change) const;
  void drop_changes();
  void check_changes_later();
  void check_changes();
  std::string change_report(const Change &change) const;
  // Gives the upstream what it talks through if it runs in another process.
  bool use_remote(Upstream &upstream, bool tools);
  std::string remote_state(const Part &part) const;
  link::Near &near(const std::string &compartment);
  void make_near(std::string_view group, Part &part);
  void policy_decided(std::uint64_t exchange, const bh_verdict &verdict) override;
  void policy_refused(std::uint64_t exchange, std::string_view why) override;
  void policy_filtered(std::uint64_t question, bool listed) override;
  void policy_changed() override;
  void telemetry_taken() override;
  void telemetry_committed(const link::NearTelemetry &near, std::uint64_t below) override;
  void process_useless(const std::string &compartment) override;
  bool telemetry_idle();
  void lane_message(bh_lane lane, std::uint64_t exchange, std::string_view message) override;
  void lane_exchange_failed(bh_lane lane, std::uint64_t exchange, const Error &error) override;
  void lane_down(bh_lane lane, const Error &error, std::uint32_t retry_after_ms) override;
  void lane_closed(bh_lane lane) override;
  void call_complete(bh_call call, std::uint32_t kind, std::string_view json) override;
  void call_failed(bh_call call, const Error &error) override;
  void call_progress(bh_call call, double value, double total, std::string_view message) override;
  void call_event(bh_call call, std::uint32_t kind, std::string_view detail) override;
  void tools_changed(const std::string &plugin, std::uint32_t kind) override;
  void tools_began(const std::string &plugin) override;
  void resource_updated(const std::string &plugin, std::string_view uri) override;
  std::vector<Upstream *> upstreams_of(const std::string &plugin) const;
  Result<Part *> connector_for(const std::string &type);
  void check_finished();
  void shut_down();
  void wait_for(const std::function<bool()> &done, std::uint64_t timeout_ms);
  void wait_until(const std::function<bool()> &done, std::uint64_t deadline_ns);
  bool transports_have_sent();
  void stop_parts(Parts &parts);
  void forget_ended();
  void log(std::int32_t level, std::string_view component, std::string_view text) const;

  Profile profile_;
  std::vector<ServerDef> servers_;  // that run: the profile's and those that plugins gave
  std::vector<Given> given_;
  std::vector<std::unique_ptr<Change>> changes_;
  bool changes_pending_ = false;
  const HostOptions options_;
  const Sealer sealer_;
  std::uint64_t created_ns_ = 0;
  std::map<std::string, RemoteUse> remote_;  // options_.remote, or what apply() made of it
  const bh_limits limits_;
  const HostTables tables_;
  std::unique_ptr<Reactor> reactor_;
  std::unique_ptr<Spawner> spawner_;  // outlives the connectors
  HostContext context_;
  std::string prints_key_;
  std::atomic<std::shared_ptr<const SecretPrints>> prints_;  // what telemetry here is to mask
  std::unique_ptr<PolicyWatch> policy_watch_;
  std::unique_ptr<RewriteChecks> rewrite_checks_;
  PolicyStack policy_stack_;  // what the router's gate asks
  std::unique_ptr<Router> router_;
  std::map<std::string, std::unique_ptr<link::Near>> nears_;  // after the reactor, see shut_down()
  Parts transports_, connectors_, tools_, policies_, telemetry_, services_;
  Parts leaving_;            // tools plugins that apply() took out, until their last call has ended
  std::deque<Parts> ended_;  // those that have stopped, until what they have posted has run
  std::vector<std::string> connector_failures_;
  std::thread::id thread_;
  std::atomic<bool> stop_requested_{false};
  bool finish_posted_ = false;
  bool services_loaded_ = false;
  bool started_ = false;
  bool stopped_ = false;
};

std::unique_ptr<ClientEnd> make_transport_end(Instance &instance);
std::unique_ptr<LocalClient> make_local_client(
    HostImpl &host, std::function<void(std::string_view message)> on_message);

}  // namespace bulkhead
