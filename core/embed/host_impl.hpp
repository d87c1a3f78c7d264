// Implements Host (core/host.hpp): creates and connects the plugins, the router, and the classes
// that reload them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "embed/extension_tables.hpp"
#include "embed/host_core.hpp"
#include "embed/host_parts.hpp"
#include "embed/host_plugins.hpp"
#include "embed/policies.hpp"
#include "embed/policy_exchange.hpp"
#include "embed/profile_reload.hpp"
#include "embed/remote_plugins.hpp"
#include "embed/seal.hpp"
#include "embed/server_changes.hpp"
#include "embed/servers.hpp"
#include "embed/telemetry_sinks.hpp"
#include "host.hpp"

namespace bulkhead {

struct RouterHooks;

class HostImpl final : public Host {
 public:
  HostImpl(Profile profile, HostOptions options);
  ~HostImpl() override;

  Result<void> load();  // completes create() after the constructor

  Result<void> start() override;
  void run() override;
  void request_stop() noexcept override;
  Result<ApplyReport> apply(Profile next) override;
  Result<ApplyReport> apply(Profile next, std::map<std::string, RemoteUse> remote) override;
  bool drained() const override { return core_.drained(); }
  void apply(Profile next, std::map<std::string, RemoteUse> remote,
             std::vector<NextPolicy> policies,
             std::function<void(Result<ApplyReport>)> done) override;
  void attach(const std::string &compartment, OwnedFd trunk) override;
  void give_up(const std::string &compartment, const std::string &reason) override;
  void telemetry_wants(const std::string &compartment, std::uint32_t needs) override;
  ApprovalList approvals(std::uint64_t watch_ms) override;
  Result<void> answer_approval(const ApprovalAnswer &answer) override;
  HostStatus status() const override;  // in status.cpp
  Reactor &reactor() noexcept override { return *core_.reactor; }
  bool settled() const override;
  std::unique_ptr<LocalClient> connect(
      std::function<void(std::string_view message)> on_message) override;
  bool run_until(const std::function<bool()> &done, std::uint64_t timeout_ms) override;

  const RouterParts &route() const noexcept { return core_.route(); }

 private:
  RouterHooks router_hooks();
  PluginRuntimeOptions plugin_options();
  bool make_stub(std::string_view group, Part &part);
  Result<void> listen();
  void check_finished();
  void finish_if_idle();
  void wait_for(const std::function<bool()> &done, std::uint64_t timeout_ms);
  void wait_until(const std::function<bool()> &done, std::uint64_t deadline_ns);
  bool transports_have_sent() const;
  void shut_down();

  HostCore core_;
  const HostTables tables_;
  const Sealer sealer_;
  HostPlugins plugins_;
  RemotePlugins remote_;
  Policies policies_;
  TelemetrySinks sinks_;
  Servers servers_;
  ProfileReload reload_;
  ServerChanges changes_;
  HostParts parts_;
  std::unique_ptr<PolicyExchange> exchange_;
  bool finish_posted_ = false;
};

}  // namespace bulkhead
