#include <algorithm>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "embed/abi_limits.hpp"
#include "embed/client_ends.hpp"
#include "embed/host_impl.hpp"
#include "profile/policy_mark.hpp"
#include "route/router.hpp"

namespace bulkhead {

Result<std::unique_ptr<Host>> Host::create(Profile profile, HostOptions options) {
  auto host = std::make_unique<HostImpl>(std::move(profile), std::move(options));
  if (auto loaded = host->load(); !loaded.has_value()) return std::unexpected(loaded.error());
  return host;
}

// ---- shared state ----------------------------------------------------------------------------

HostCore::HostCore(Profile first_profile, HostOptions host_options)
    : profile(std::move(first_profile)),
      options(std::move(host_options)),
      limits(abi_limits(profile.limits)) {}

void HostCore::log(std::int32_t level, std::string_view component, std::string_view text) const {
  if (!options.log || level < static_cast<std::int32_t>(options.log_level)) return;
  const auto shown = static_cast<LogLevel>(std::min<std::int32_t>(level, BH_LOG_ERROR));
  options.log(shown, component, text);
}

bool HostCore::drained() const {
  return router == nullptr ||
         (route().servers.draining.size() == 0 && route().servers.wires.closing() == 0);
}

const RouterParts &HostCore::route() const noexcept {
  return router->parts();
}

bool HostCore::reopens_sessions() const noexcept {
  return reactor->now_ns() - created_ns < profile.limits.session_idle_ms * 1'000'000u;
}

void HostCore::report_unhealthy(const std::string &compartment) const {
  log(BH_LOG_ERROR, compartment, "it is unresponsive or violated the protocol; terminating it");
  if (options.on_unhealthy) options.on_unhealthy(compartment);
}

// ---- loading ---------------------------------------------------------------------------------

HostImpl::HostImpl(Profile profile, HostOptions options)
    : core_(std::move(profile), std::move(options)),
      tables_(core_.limits),
      sealer_(core_.options.sealing_key),
      plugins_(core_, parts_),
      remote_(core_, plugins_.policies(), plugins_.telemetry(), plugins_.tools()),
      policies_(core_, plugins_.policies()),
      sinks_(core_, plugins_.telemetry()),
      servers_(core_, plugins_, remote_),
      reload_(core_, plugins_, remote_, policies_, servers_),
      changes_(core_, reload_),
      parts_{core_, plugins_, policies_, changes_, sealer_, [this](Part &transport) {
               transport.finished = true;
               check_finished();
             }} {}

HostImpl::~HostImpl() {
  shut_down();
}

Result<void> HostImpl::load() {
  auto reactor = Reactor::create();
  if (!reactor.has_value()) return std::unexpected(reactor.error());
  core_.reactor = std::move(*reactor);
  core_.created_ns = core_.reactor->now_ns();
  PolicyMark &mark = core_.profile.policy_mark;
  if (mark.generation == 0) mark = first_policy_mark(core_.profile.policies);
  core_.router = std::make_unique<Router>(core_.profile, *core_.reactor, router_hooks());
  policies_.connect();
  exchange_ = std::make_unique<PolicyExchange>(*core_.reactor);
  core_.router->use_ledger(core_.options.ledger.get());
  auto loaded = plugins_.load(plugin_options(), [this](std::string_view group, Part &part) {
    return make_stub(group, part);
  });
  return loaded.has_value() ? servers_.add_all() : loaded;
}

RouterHooks HostImpl::router_hooks() {
  const HostOptions &options = core_.options;
  RouterHooks hooks;
  hooks.sealing_key = options.sealing_key;
  hooks.epoch = options.epoch;
  hooks.log = [this](std::int32_t level, std::string_view text) {
    core_.log(level, "router", text);
  };
  hooks.mask = [this](std::string_view text) -> std::optional<std::string> {
    const auto prints = plugins_.prints();
    if (prints->empty()) return std::nullopt;
    std::uint64_t count = 0;
    return prints->mask(text, &count);
  };
  hooks.on_status = [this] {
    changes_.check_later();
    if (core_.options.on_status) core_.options.on_status();
  };
  hooks.on_idle = [this] {
    changes_.check_later();
    check_finished();
  };
  hooks.on_drained = [this] {
    changes_.check_later();
    plugins_.end_left();
  };
  hooks.on_unanswered = [this](std::uint64_t number, bool late) {
    policies_.unanswered(number, late);
  };
  hooks.on_approval = [this](const ApprovalOutcome &outcome) {
    core_.log(BH_LOG_INFO, "approvals", describe(outcome));
    if (core_.options.on_approval) core_.options.on_approval(outcome);
  };
  hooks.approval_hint = options.approval_hint;
  hooks.on_pins = options.on_pins;
  hooks.on_list = options.on_list;
  return hooks;
}

PluginRuntimeOptions HostImpl::plugin_options() {
  PluginRuntimeOptions options;
  options.static_plugins = std::move(core_.options.static_plugins);
  options.checked_plugins = std::move(core_.options.checked_plugins);
  options.services = core_.options.services;
  options.log = [this](std::int32_t level, std::string_view component, std::string_view text) {
    core_.log(level, component, text);
  };
  options.log_level = static_cast<std::int32_t>(core_.options.log_level);
  options.find_table = [this](const PluginPart &part, std::string_view id) {
    return tables_.find(static_cast<const Part &>(part), id);
  };
  options.spawns = true;
  options.adopt_orphans = core_.options.adopt_orphans;
  options.on_servers_missing = [this] {
    if (core_.options.on_status) core_.options.on_status();
  };
  return options;
}

// Creates the client stub for a plugin that runs in a compartment. Returns false if the plugin runs
// in this process. Each policy and telemetry plugin has its own compartment and therefore its own
// trunk.
bool HostImpl::make_stub(std::string_view group, Part &part) {
  const RemoteUse *use = remote_.find(group, part.use.id);
  if (use == nullptr) return false;
  part.compartment = use->compartment;
  if (group == "policies") {
    part.policy_stub = std::make_unique<link::PolicyClientStub>(*core_.reactor, part.compartment,
                                                                core_.limits, policies_);
  } else if (group == "telemetry") {
    part.telemetry_stub = std::make_unique<link::TelemetryClientStub>(
        *core_.reactor, part.compartment, part.use.required, sinks_);
  }
  return true;
}

// ---- starting --------------------------------------------------------------------------------

Result<void> HostImpl::start() {
  core_.thread = std::this_thread::get_id();
  if (auto up = plugins_.start_all(); !up.has_value()) return up;
  servers_.drop_failed_connectors();
  if (auto used = policies_.use(); !used.has_value()) return used;
  sinks_.use();
  core_.started = true;
  policies_.record({});
  core_.router->start(core_.options.eager);
  return listen();
}

Result<void> HostImpl::listen() {
  for (const auto &part : plugins_.transports()) {
    if (!part->runs()) continue;
    const auto *transport = part->instance->ext<bh_transport>(BH_EXT_TRANSPORT);
    if (transport == nullptr) {
      return fail(BH_E_INVALID, "plugin \"" + part->use.plugin + "\" is not a transport");
    }
    part->end = make_transport_end(*part->instance);
    bh_error error = bh::make_error();
    if (const bh_status status = transport->listen(part->instance->self(), &error);
        status != BH_OK) {
      return fail(status, part->use.id + ": " + std::string(bh::text(error)));
    }
  }
  return {};
}

// ---- requests of the program ----------------------------------------------------------------

Result<ApplyReport> HostImpl::apply(Profile next) {
  if (!core_.started || core_.stopped) return fail(BH_E_UNAVAILABLE, "the gateway is not running");
  std::vector<std::string> refused;
  std::vector<ServerDef> servers = changes_.all_servers(next, &refused);
  for (const std::string &why : refused) core_.log(BH_LOG_WARN, "host", why);
  return reload_.apply(std::move(next), std::move(servers));
}

Result<ApplyReport> HostImpl::apply(Profile next, std::map<std::string, RemoteUse> remote) {
  RemotePlugins::Uses before = remote_.exchange_uses(std::move(remote));
  auto report = apply(std::move(next));
  if (!report.has_value()) remote_.exchange_uses(std::move(before));
  return report;
}

void HostImpl::apply(Profile next, std::map<std::string, RemoteUse> remote,
                     std::vector<NextPolicy> policies,
                     std::function<void(Result<ApplyReport>)> done) {
  if (policies.empty()) return done(apply(std::move(next), std::move(remote)));
  std::vector<PolicyExchange::Next> processes;
  for (NextPolicy &policy : policies) {
    link::PolicyClientStub *stub = remote_.find_policy(policy.compartment);
    if (stub == nullptr || core_.stopped) {
      return done(
          fail(BH_E_INVALID, "no policy runs in compartment \"" + policy.compartment + "\""));
    }
    processes.push_back({stub, std::move(policy.trunk)});
  }
  auto profile = std::make_shared<Profile>(std::move(next));
  exchange_->prepare(std::move(processes), [this, profile, remote = std::move(remote),
                                            done = std::move(done)](const Result<void> &prepared) {
    if (!prepared) return done(std::unexpected(prepared.error()));
    auto report = apply(std::move(*profile), remote);
    if (report) {
      exchange_->use();
    } else {
      exchange_->discard();
    }
    done(std::move(report));
  });
}

void HostImpl::attach(const std::string &compartment, OwnedFd trunk) {
  if (!core_.stopped) remote_.attach(compartment, std::move(trunk));
}

void HostImpl::give_up(const std::string &compartment, const std::string &reason) {
  if (!core_.stopped) remote_.give_up(compartment, reason);
}

void HostImpl::telemetry_wants(const std::string &compartment, std::uint32_t needs) {
  if (!core_.stopped) remote_.expect_telemetry(compartment, needs);
}

ApprovalList HostImpl::approvals(std::uint64_t watch_ms) {
  return core_.router == nullptr ? ApprovalList{} : core_.route().calls.desk.list(watch_ms);
}

Result<void> HostImpl::answer_approval(const ApprovalAnswer &answer) {
  if (core_.router == nullptr) return fail(BH_E_UNAVAILABLE, "the gateway is stopping");
  return core_.route().calls.pipeline.answer_approval(answer);
}

std::unique_ptr<LocalClient> HostImpl::connect(
    std::function<void(std::string_view message)> on_message) {
  return make_local_client(core_.route().clients.sessions, std::move(on_message));
}

// ---- running and stopping --------------------------------------------------------------------

void HostImpl::run() {
  core_.thread = std::this_thread::get_id();
  while (!core_.stop_requested.load(std::memory_order_relaxed)) core_.reactor->poll(-1);
  shut_down();
}

bool HostImpl::settled() const {
  return core_.route().clients.views.all_settled();
}

bool HostImpl::run_until(const std::function<bool()> &done, std::uint64_t timeout_ms) {
  core_.thread = std::this_thread::get_id();
  wait_for(done, timeout_ms);
  return done();
}

void HostImpl::wait_for(const std::function<bool()> &done, std::uint64_t timeout_ms) {
  bool over = false;
  const std::uint64_t timer = core_.reactor->timer_start(
      &core_, timeout_ms, bh::callback(&over, [](bool &flag) { flag = true; }));
  while (!over && !done()) core_.reactor->poll(-1);
  core_.reactor->timer_cancel(timer);
}

void HostImpl::wait_until(const std::function<bool()> &done, std::uint64_t deadline_ns) {
  const std::uint64_t now = core_.reactor->now_ns();
  if (now < deadline_ns) wait_for(done, (deadline_ns - now) / 1'000'000u);
}

// Returns true if no transport has unsent responses.
bool HostImpl::transports_have_sent() const {
  std::string ignored;
  const Parts &parts = plugins_.transports();
  return std::none_of(parts.begin(), parts.end(), [&](const auto &part) {
    return part->end != nullptr && part->instance->probe(&ignored) == BH_PENDING;
  });
}

void HostImpl::request_stop() noexcept {
  core_.stop_requested.store(true);
  core_.reactor->wake();
}

// Stops the host if no more clients can connect and the router is idle.
void HostImpl::check_finished() {
  const Parts &parts = plugins_.transports();
  if (parts.empty() || finish_posted_ || core_.stopped) return;
  for (const auto &part : parts) {
    if (!part->finished && part->failure.empty()) return;
  }
  if (!core_.router->idle()) return;
  finish_posted_ = true;
  core_.reactor->post(&core_, bh::callback<&HostImpl::finish_if_idle>(this));
}

void HostImpl::finish_if_idle() {
  finish_posted_ = false;
  if (core_.router->idle()) request_stop();
}

void HostImpl::shut_down() {
  if (core_.stopped || core_.router == nullptr) return;
  core_.stopped = true;
  changes_.drop();
  core_.thread = std::this_thread::get_id();
  const RouterParts &route = core_.route();
  const std::uint64_t grace = core_.profile.limits.shutdown_grace_ms;
  const std::uint64_t deadline = core_.reactor->now_ns() + grace * 1'000'000u;
  for (const auto &part : plugins_.transports()) {
    if (part->end == nullptr) continue;
    part->instance->ext<bh_transport>(BH_EXT_TRANSPORT)->stop_accepting(part->instance->self());
    part->instance->drain(deadline);
  }
  route.calls.pipeline.refuse_new_calls();
  wait_for([&route] { return !route.calls.ends.busy(); }, grace);
  route.calls.ends.end_all();
  route.clients.sessions.end_all("the gateway is stopping");
  wait_until([this] { return transports_have_sent(); }, deadline);
  core_.router->close_lanes();
  // A child process gets two grace periods: one after its stdin is closed, and one after SIGTERM.
  wait_for([&route] { return route.servers.wires.closing() == 0; }, 2 * grace + 1'000);
  plugins_.stop_users();
  wait_for([this] { return sinks_.idle(); }, grace);
  plugins_.stop_recorders();
  core_.reactor->forget(&core_);
  core_.router.reset();
  remote_.clear();
  plugins_.clear();
}

}  // namespace bulkhead
