#include <sodium/randombytes.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/cpp/basics.hpp"
#include "embed/abi_limits.hpp"
#include "embed/host_impl.hpp"
#include "embed/profile_prints.hpp"
#include "profile/policy_mark.hpp"

namespace bulkhead {
namespace {

bool provides(const Instance &instance, std::string_view id) {
  const auto &ids = instance.library().manifest().provides;
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// A file name for a server's stderr: server names are [A-Za-z0-9_.-], so nothing else is needed.
std::string stderr_file(const std::string &state_dir, const std::string &server) {
  return state_dir + "/log/servers/" + server + ".log";
}

}  // namespace

std::string_view to_string(ServerState state) noexcept {
  switch (state) {
    case ServerState::connecting:
      return "connecting";
    case ServerState::ready:
      return "ready";
    case ServerState::idle:
      return "idle";
    case ServerState::failed:
      return "failed";
    case ServerState::disabled:
      return "disabled";
  }
  return "";
}

Result<std::unique_ptr<Host>> Host::create(Profile profile, HostOptions options) {
  auto host = std::make_unique<HostImpl>(std::move(profile), std::move(options));
  if (auto loaded = host->load(); !loaded.has_value()) return std::unexpected(loaded.error());
  return host;
}

HostImpl::HostImpl(Profile profile, HostOptions options)
    : profile_(std::move(profile)),
      options_(std::move(options)),
      sealer_(options_.sealing_key),
      remote_(options_.remote),
      limits_(abi_limits(profile_.limits)),
      tables_(&limits_),
      thread_(std::this_thread::get_id()) {}

HostImpl::~HostImpl() {
  shut_down();
}

void HostImpl::log(std::int32_t level, std::string_view component, std::string_view text) const {
  if (!options_.log || level < static_cast<std::int32_t>(options_.log_level)) return;
  const auto shown = static_cast<LogLevel>(std::min<std::int32_t>(level, BH_LOG_ERROR));
  options_.log(shown, component, text);
}

// ---- loading ---------------------------------------------------------------------------------

Result<void> HostImpl::load() {
  auto reactor = Reactor::create();
  if (!reactor.has_value()) return std::unexpected(reactor.error());
  reactor_ = std::move(*reactor);
  created_ns_ = reactor_->now_ns();
  if (profile_.policy_mark.generation == 0) {
    profile_.policy_mark = first_policy_mark(profile_.policies);
  }
  context_.reactor = reactor_.get();
  context_.name = "bulkhead";
  context_.version = BULKHEAD_VERSION;
  context_.state_dir = profile_.state_dir;
  context_.log_level = static_cast<std::int32_t>(options_.log_level);
  context_.log = [this](std::int32_t level, std::string_view component, std::string_view text) {
    log(level, component, text);
  };
  context_.services = options_.services;
  context_.extra_ext = [this](Instance &instance, std::string_view id) {
    return tables_.find(id, static_cast<const Part *>(instance.user));
  };
  spawner_ = std::make_unique<Spawner>(spawn_options());
  context_.children = [this](const Instance &instance) -> Spawner * {
    const auto *part = static_cast<const Part *>(instance.user);
    return part != nullptr && part->starts_children ? spawner_.get() : nullptr;
  };
  context_.signs = [](const Instance &instance) {
    const auto *part = static_cast<const Part *>(instance.user);
    return part != nullptr && part->keeps_records;
  };
  use_prints();
  context_.prints = [this](const Instance &instance) -> std::shared_ptr<const SecretPrints> {
    return context_.signs(instance) ? prints_.load() : nullptr;
  };
  RouterHooks hooks;
  hooks.log = [this](std::int32_t level, std::string_view text) { log(level, "router", text); };
  hooks.mask = [this](std::string_view text) -> std::optional<std::string> {
    const auto prints = prints_.load();
    if (prints->empty()) return std::nullopt;
    std::uint64_t count = 0;
    return prints->mask(text, &count);
  };
  hooks.on_status = [this] {
    check_changes_later();
    if (options_.on_status) options_.on_status();
  };
  hooks.on_idle = [this] {
    check_changes_later();
    check_finished();
  };
  hooks.on_drained = [this] {
    check_changes_later();
    end_left_parts();
  };
  hooks.on_unanswered = [this](std::uint64_t number, bool late) {
    policy_stack_.forget(number);
    for (const auto &part : policies_) {
      if (part->near_policy != nullptr) part->near_policy->unanswered(number, late);
    }
  };
  hooks.on_approval = [this](const ApprovalOutcome &outcome) {
    log(BH_LOG_INFO, "approvals", describe(outcome));
    if (options_.on_approval) options_.on_approval(outcome);
  };
  hooks.approval_hint = options_.approval_hint;
  hooks.on_pins = options_.on_pins;
  hooks.on_list = options_.on_list;
  router_ = std::make_unique<Router>(profile_, *reactor_, std::move(hooks));
  rewrite_checks_ = std::make_unique<RewriteChecks>(
      *reactor_, [this](std::uint64_t exchange, Gate::Decision decision, const void *who) {
        policy_answered(exchange, std::move(decision), who);
      });
  const Gate::ReadLater later = [this](std::uint64_t exchange, Gate::Decision rewrite,
                                       const void *who) {
    return rewrite_checks_->begin(exchange, std::move(rewrite), who);
  };
  policy_stack_.read_with(later);
  router_->gate().read_with(later);
  router_->use_ledger(options_.ledger.get());
  return set_up();
}

SpawnOptions HostImpl::spawn_options() const {
  SpawnOptions options;
  options.state_dir = profile_.state_dir;
  options.own = profile_.own_paths;
  options.require = profile_.isolation.require;
  options.adopt = options_.adopt_orphans;
  options.reactor = reactor_.get();
  options.log = [this](std::int32_t level, std::string_view text) { log(level, "sandbox", text); };
  options.on_missing = [this] {
    if (options_.on_status) options_.on_status();
  };
  return options;
}

Result<void> HostImpl::set_up() {
  const auto add = [this](std::string_view group, const std::vector<PluginUse> &uses,
                          Parts *parts) { return add_parts(group, uses, parts); };
  if (auto added = add("telemetry", profile_.telemetry, &telemetry_); !added) return added;
  if (auto added = add("policies", profile_.policies, &policies_); !added) return added;
  if (auto added = add("tools", profile_.tools, &tools_); !added) return added;
  if (auto added = add("transports", profile_.transports, &transports_); !added) return added;
  return add_servers();
}

Result<void> HostImpl::add_parts(std::string_view group, const std::vector<PluginUse> &uses,
                                 Parts *parts) {
  for (const PluginUse &use : uses) {
    auto part = make_part_or_link(group, use);
    if (!part.has_value()) return std::unexpected(part.error());
    parts->push_back(std::move(*part));
  }
  return {};
}

// One that runs in another process has nothing to load here.
Result<std::unique_ptr<Part>> HostImpl::make_part_or_link(std::string_view group,
                                                          const PluginUse &use) {
  const auto at = remote_.find(remote_name(group, use.id));
  if (at == remote_.end()) return make_part(use, false, group == "telemetry");
  auto part = std::make_unique<Part>();
  part->host = this;
  part->use = use;
  part->compartment = at->second.compartment;
  make_near(group, *part);
  return part;
}

// A part that the profile can do without is kept with its failure, so that status can show it.
Result<std::unique_ptr<Part>> HostImpl::make_part(const PluginUse &use, bool starts_children,
                                                  bool keeps_records) {
  auto part = std::make_unique<Part>();
  part->host = this;
  part->starts_children = starts_children;
  part->keeps_records = keeps_records;
  part->use = use;
  LoadOptions load;
  load.dirs = profile_.plugin_dirs;
  load.init_timeout_ms = profile_.limits.plugin_init_ms;
  load.sha256 = use.sha256;
  const auto linked = std::find_if(options_.static_plugins.begin(), options_.static_plugins.end(),
                                   [&](const auto &entry) { return entry.first == use.plugin; });
  auto library = linked != options_.static_plugins.end()
                     ? Library::from_entry(use.plugin, linked->second, nullptr, load)
                     : load_library(use.plugin, options_.checked_plugins, load);
  Error error;
  if (library.has_value()) {
    auto instance = Instance::create(use.id, std::move(*library), context_, part.get());
    if (instance.has_value()) {
      part->instance = std::move(*instance);
      auto configured = part->instance->configure(use.config_json);
      if (configured.has_value()) return part;
      error = configured.error();
      part->instance.reset();
    } else {
      error = instance.error();
    }
  } else {
    error = library.error();
  }
  if (use.required) return std::unexpected(error);
  log(BH_LOG_WARN, use.id, error.text + " (going on without it, as the profile says)");
  part->failure = error.text;
  return part;
}

Result<Part *> HostImpl::connector_for(const std::string &type) {
  const auto at = profile_.connectors.find(type);
  if (at == profile_.connectors.end()) {
    return fail(BH_E_NOT_FOUND, "no connector is configured for servers of type \"" + type +
                                    "\" (connectors." + type + ")");
  }
  for (const auto &part : connectors_) {
    if (part->use.plugin == at->second) {
      if (!part->failure.empty()) return fail(BH_E_UNAVAILABLE, part->failure);
      return part.get();
    }
  }
  PluginUse use;
  const std::size_t slash = at->second.rfind('/');
  use.id = slash == std::string::npos ? at->second : at->second.substr(slash + 1);
  use.plugin = at->second;
  use.config_json = "{}";
  use.required = false;
  auto part = make_part(use, connects_children(use.plugin));
  connectors_.push_back(std::move(*part));
  Part &made = *connectors_.back();
  if (started_) static_cast<void>(bring_up(made));  // the failure is kept
  if (!made.failure.empty()) return fail(BH_E_UNAVAILABLE, made.failure);
  return &made;
}

// Only what the profile names as the connector of servers with a command gets bh.host.spawn/1.
bool HostImpl::connects_children(const std::string &plugin) const {
  const auto is_connector_of = [&](const std::string &type) {
    const auto at = profile_.connectors.find(type);
    return at != profile_.connectors.end() && at->second == plugin;
  };
  return is_connector_of("stdio") ||
         std::any_of(profile_.servers.begin(), profile_.servers.end(), [&](const ServerDef &def) {
           return !def.command.empty() && is_connector_of(def.type);
         });
}

// Connectors write servers' standard error there, which may hold anything, so it is ours alone.
// Without the folder they keep a server's last lines in memory only.
void HostImpl::make_log_folder() const {
  const std::string log_folder = profile_.state_dir + "/log";
  std::error_code error;
  for (const std::string &folder : {log_folder, log_folder + "/servers"}) {
    std::filesystem::create_directories(folder, error);
    if (!error) {
      std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
    }
    if (error) return log(BH_LOG_WARN, "host", "cannot make " + folder + ": " + error.message());
  }
}

// With what connectors get beside what the profile says.
ServerDef HostImpl::complete(const ServerDef &def) const {
  ServerDef copy = def;
  if (profile_.state_dir.empty()) return copy;
  std::string quoted;
  mcp::append_quoted(&quoted, stderr_file(profile_.state_dir, def.name));
  copy.extra["stderr_file"] = quoted;
  copy.extra["stderr_bytes"] = std::to_string(profile_.limits.stderr_bytes);
  return copy;
}

std::unique_ptr<Upstream> HostImpl::make_upstream(const ServerDef &def) {
  auto upstream = router_->new_upstream(complete(def));
  if (def.disabled || use_remote(*upstream, false)) return upstream;
  auto connector = connector_for(def.type);
  if (!connector.has_value()) {
    upstream->unusable = connector.error().text;
    log(BH_LOG_ERROR, def.name, upstream->unusable);
    return upstream;
  }
  upstream->connector = (*connector)->instance->ext<bh_connector>(BH_EXT_CONNECTOR);
  upstream->self = (*connector)->instance->self();
  if (upstream->connector == nullptr) {
    upstream->unusable = "plugin \"" + (*connector)->use.plugin + "\" is not a connector";
  }
  return upstream;
}

std::unique_ptr<Upstream> HostImpl::make_tools_upstream(Part &part) {
  ServerDef def;
  def.name = part.use.id;
  def.type = part.use.plugin;
  auto upstream = router_->new_upstream(std::move(def));
  part.upstream = upstream.get();
  if (use_remote(*upstream, true)) return upstream;
  if (part.instance != nullptr && part.failure.empty()) {
    upstream->tools = part.instance->ext<bh_tools>(BH_EXT_TOOLS);
    upstream->self = part.instance->self();
    if (upstream->tools == nullptr) {
      part.failure = "plugin \"" + part.use.plugin + "\" offers no tools";
    }
  }
  upstream->unusable = part.failure;
  return upstream;
}

Result<void> HostImpl::add_servers() {
  if (!profile_.servers.empty() && !profile_.state_dir.empty()) make_log_folder();
  servers_ = profile_.servers;
  for (const ServerDef &def : servers_) router_->add_upstream(make_upstream(def));
  for (const auto &part : tools_) {
    router_->add_upstream(make_tools_upstream(*part));
    const bool broken = part->instance != nullptr && !part->failure.empty();
    if (broken && part->use.required) return fail(BH_E_INVALID, part->failure);
  }
  return {};
}

// ---- starting --------------------------------------------------------------------------------

Result<void> HostImpl::bring_up(Part &part) {
  if (part.instance == nullptr) return {};
  auto started = part.instance->start();
  if (started.has_value()) return {};
  if (part.use.required) return started;
  part.failure = started.error().text;
  if (part.upstream != nullptr) {
    part.upstream->unusable = part.failure;
    part.upstream->tools = nullptr;
  }
  log(BH_LOG_WARN, part.use.id, part.failure + " (going on without it, as the profile says)");
  return {};
}

Result<void> HostImpl::start() {
  thread_ = std::this_thread::get_id();
  for (Parts *parts : {&telemetry_, &policies_, &connectors_, &tools_, &transports_}) {
    for (const auto &part : *parts) {
      if (auto up = bring_up(*part); !up.has_value()) return up;
    }
  }
  // A connector that cannot start takes its servers along, visibly.
  for (const auto &part : connectors_) {
    if (part->failure.empty()) continue;
    for (const auto &upstream : router_->upstreams()) {
      if (part->instance == nullptr || upstream->self != part->instance->self()) continue;
      upstream->connector = nullptr;
      upstream->unusable = part->failure;
    }
  }
  if (auto used = use_policies(); !used.has_value()) return used;
  use_telemetry();
  started_ = true;
  record_policy({});
  router_->start(options_.eager);
  for (const auto &part : transports_) {
    if (part->instance == nullptr || !part->failure.empty()) continue;
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

Result<void> HostImpl::use_policies() {
  std::vector<PolicyStack::Engine> engines;
  bool watched = false;
  for (const auto &part : policies_) {
    if (part->near_policy != nullptr) {
      engines.push_back({&link::NearPolicy::table(), part->near_policy.get()});
      continue;
    }
    const auto *policy = part->instance == nullptr
                             ? nullptr
                             : part->instance->ext(BH_EXT_POLICY, &bh_policy::filter);
    if (policy == nullptr) {
      return fail(BH_E_INVALID,
                  "plugin \"" + part->use.plugin + "\" is no policy: " + part->failure);
    }
    engines.push_back({policy, part->instance->self(), &part->use.id});
    watched = watched || policy->needs(part->instance->self()) != 0;
  }
  if (engines.empty()) return {};
  policy_stack_.use(std::move(engines), profile_.limits.policy_waiting_bytes);
  watch_policies(watched);
  router_->gate().use(&PolicyStack::table(), &policy_stack_);
  return {};
}

// The stack and the watch have copies of their limits.
void HostImpl::use_policy_limits() {
  policy_stack_.watch_with(nullptr);
  policy_watch_.reset();
  static_cast<void>(use_policies());
}

// What decides from here on. `changes`: from what decided before.
void HostImpl::record_policy(const std::vector<std::string> &changes) {
  const PolicyMark &mark = profile_.policy_mark;
  std::string detail = "{\"generation\":" + std::to_string(mark.generation) +
                       ",\"rules\":" + std::to_string(mark.rules) + ",\"digest\":";
  mcp::append_quoted(&detail, mark.digest);
  std::string policies, changed;
  for (const PluginUse &use : profile_.policies) {
    policies += (policies.empty() ? "" : ", ") + use.id + " (" + use.plugin + ")";
  }
  for (const std::string &line : changes) changed += (changed.empty() ? "" : ", ") + line;
  detail += ",\"policies\":";
  mcp::append_quoted(&detail, policies);
  detail += ",\"changes\":";
  mcp::append_quoted(&detail, changed);
  router_->recorder().policy(detail + '}');
}

// Of the profile as it is now.
void HostImpl::use_prints() {
  if (prints_key_.empty()) {
    prints_key_.resize(32);
    ::randombytes_buf(prints_key_.data(), prints_key_.size());  // ends the process where it cannot
  }
  prints_ = std::make_shared<const SecretPrints>(prints_of(profile_, prints_key_));
}

// One that decides nothing is not worth a thread.
void HostImpl::watch_policies(bool wanted) {
  constexpr std::uint64_t least_ms = 1'000;  // below, a busy machine looks like a policy that hangs
  if (!wanted || policy_watch_ != nullptr || !policy_hang_handler()) return;
  policy_watch_ = std::make_unique<PolicyWatch>(
      std::max(profile_.limits.policy_timeout_ms, least_ms), policy_hang_handler());
  policy_stack_.watch_with(policy_watch_.get());
}

void HostImpl::policy_answered(std::uint64_t exchange, Gate::Decision decision, const void *who) {
  if (decision.unread) {
    decision = rewrite_checks_->begin(exchange, std::move(decision), who);
    if (decision.verdict == Gate::Verdict::pending) return;
  }
  decision = policy_stack_.answered(exchange, std::move(decision), who);
  if (decision.verdict != Gate::Verdict::pending) router_->policy_decided(exchange, decision);
}

void HostImpl::policy_shown(std::uint64_t question, bool listed, const void *who) {
  if (policy_stack_.size() <= 1) return router_->policy_filtered(question, listed);
  const Gate::Shown shown = policy_stack_.filtered(question, listed, who);
  if (shown == Gate::Shown::pending) return;
  router_->policy_filtered(question, shown == Gate::Shown::yes);
}

void HostImpl::use_telemetry() {
  for (const auto &part : telemetry_) {
    if (part->near_telemetry != nullptr) {
      link::NearTelemetry &near = *part->near_telemetry;
      near.set_earlier_below(router_->recorder().earlier_below());
      router_->recorder().add_sink(&link::NearTelemetry::table(), &near, true);
      continue;
    }
    if (part->instance == nullptr || !part->failure.empty()) continue;
    const auto *telemetry = part->instance->ext(BH_EXT_TELEMETRY, &bh_telemetry::batch);
    if (telemetry != nullptr) router_->recorder().add_sink(telemetry, part->instance->self());
  }
  router_->recorder().identify(profile_.identity.profile, profile_.identity.user);
}

const bh_http_service *HostImpl::http_service(void **self) {
  if (!services_loaded_ && !stopped_) {
    services_loaded_ = true;  // also when it fails: not again for every request
    for (const PluginUse &use : profile_.services) {
      auto part = make_part(use);
      if (!part.has_value()) {
        log(BH_LOG_ERROR, use.id, part.error().text);
        continue;
      }
      services_.push_back(std::move(*part));
      if (auto up = bring_up(*services_.back()); !up.has_value()) {
        services_.back()->failure = up.error().text;
        log(BH_LOG_ERROR, use.id, up.error().text);
      }
    }
  }
  for (const auto &part : services_) {
    if (part->instance == nullptr || !part->failure.empty()) continue;
    if (!provides(*part->instance, BH_EXT_HTTP_SERVICE)) continue;
    *self = part->instance->self();
    return part->instance->ext<bh_http_service>(BH_EXT_HTTP_SERVICE);
  }
  return nullptr;
}

// ---- running and stopping --------------------------------------------------------------------

void HostImpl::run() {
  thread_ = std::this_thread::get_id();
  while (!stop_requested_.load(std::memory_order_relaxed)) reactor_->poll(-1);
  shut_down();
}

bool HostImpl::run_until(const std::function<bool()> &done, std::uint64_t timeout_ms) {
  thread_ = std::this_thread::get_id();
  wait_for(done, timeout_ms);
  return done();
}

void HostImpl::wait_for(const std::function<bool()> &done, std::uint64_t timeout_ms) {
  bool over = false;
  const std::uint64_t timer = reactor_->timer_start(
      this, timeout_ms, [](void *arg) { *static_cast<bool *>(arg) = true; }, &over);
  while (!over && !done()) reactor_->poll(-1);
  reactor_->timer_cancel(timer);
}

void HostImpl::wait_until(const std::function<bool()> &done, std::uint64_t deadline_ns) {
  const std::uint64_t now = reactor_->now_ns();
  if (now < deadline_ns) wait_for(done, (deadline_ns - now) / 1'000'000u);
}

// No transport has unsent answers.
bool HostImpl::transports_have_sent() {
  std::string ignored;
  return std::none_of(transports_.begin(), transports_.end(), [&](const auto &part) {
    return part->end != nullptr && part->instance->probe(&ignored) == BH_PENDING;
  });
}

void HostImpl::request_stop() noexcept {
  stop_requested_.store(true);
  reactor_->wake();
}

void HostImpl::transport_finished(Part &part) {
  part.finished = true;
  check_finished();
}

// Ends the run once no client can come any more and what was asked is answered.
void HostImpl::check_finished() {
  if (transports_.empty() || finish_posted_ || stopped_) return;
  for (const auto &part : transports_) {
    if (!part->finished && part->failure.empty()) return;
  }
  if (!router_->idle()) return;
  finish_posted_ = true;
  reactor_->post(
      this,
      [](void *arg) {
        auto &self = *static_cast<HostImpl *>(arg);
        self.finish_posted_ = false;
        if (self.router_->idle()) self.request_stop();
      },
      this);
}

void HostImpl::stop_parts(Parts &parts) {
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
    Instance *instance = (*part)->instance.get();
    if (instance == nullptr) continue;
    if (instance->state() == InstanceState::started ||
        instance->state() == InstanceState::draining) {
      instance->stop();
    }
  }
}

void HostImpl::shut_down() {
  if (stopped_ || router_ == nullptr) return;
  stopped_ = true;
  drop_changes();
  thread_ = std::this_thread::get_id();
  const std::uint64_t grace = profile_.limits.shutdown_grace_ms;
  const std::uint64_t deadline = reactor_->now_ns() + grace * 1'000'000u;
  for (const auto &part : transports_) {
    if (part->end == nullptr) continue;
    part->instance->ext<bh_transport>(BH_EXT_TRANSPORT)->stop_accepting(part->instance->self());
    part->instance->drain(deadline);
  }
  router_->calls().refuse_new_calls();
  wait_for([this] { return !router_->ends().busy(); }, grace);
  router_->ends().end_all();
  router_->clients().end_all("the gateway is stopping");
  wait_until([this] { return transports_have_sent(); }, deadline);
  router_->close_lanes();
  // Children get their grace twice: for the closed stdin and for SIGTERM.
  wait_for([this] { return router_->wires().closing() == 0; }, 2 * grace + 1'000);
  stop_parts(transports_);
  stop_parts(connectors_);
  stop_parts(tools_);
  stop_parts(leaving_);
  wait_for([this] { return telemetry_idle(); }, grace);
  stop_parts(telemetry_);
  stop_parts(policies_);
  stop_parts(services_);
  reactor_->forget(this);
  router_.reset();
  nears_.clear();
  while (!ended_.empty()) forget_ended();
  for (Parts *parts :
       {&transports_, &connectors_, &tools_, &leaving_, &telemetry_, &policies_, &services_}) {
    parts->clear();
  }
}

ApprovalList HostImpl::approvals(std::uint64_t watch_ms) {
  return router_ == nullptr ? ApprovalList{} : router_->desk().list(watch_ms);
}

Result<void> HostImpl::answer_approval(const ApprovalAnswer &answer) {
  if (router_ == nullptr) return fail(BH_E_UNAVAILABLE, "the gateway is stopping");
  return router_->calls().answer_approval(answer);
}

// ---- looking ---------------------------------------------------------------------------------

HostStatus HostImpl::status() const {
  HostStatus status;
  if (router_ == nullptr) return status;
  status.policy_mark = profile_.policy_mark;
  for (const auto &upstream : router_->upstreams()) status.servers.push_back(upstream->status());
  for (const Parts *parts :
       {&transports_, &connectors_, &tools_, &policies_, &telemetry_, &services_}) {
    for (const auto &part : *parts) {
      PluginStatus plugin;
      plugin.id = part->use.id;
      plugin.plugin = part->use.plugin;
      plugin.state = part->failure.empty() ? "started" : "failed: " + part->failure;
      if (!part->compartment.empty()) plugin.state = remote_state(*part);
      if (part->near_telemetry != nullptr) {
        for (const auto &[name, value] : part->near_telemetry->counters()) {
          status.counters.emplace_back(part->use.id + "." + name, value);
        }
      }
      if (part->instance != nullptr) {
        plugin.path = part->instance->library().path();
        plugin.version = part->instance->library().manifest().version;
        plugin.provides = part->instance->library().manifest().provides;
        for (const auto &[name, value] : part->instance->counters()) {
          status.counters.emplace_back(part->use.id + "." + name, value);
        }
      }
      status.plugins.push_back(std::move(plugin));
    }
  }
  if (spawner_ != nullptr) status.servers_missing = spawner_->missing();
  for (const auto &part : transports_) {
    if (part->end == nullptr) continue;
    const auto *transport = part->instance->ext<bh_transport>(BH_EXT_TRANSPORT);
    status.endpoints.emplace_back(bh::view(transport->endpoint(part->instance->self())));
  }
  const RouterCounters &c = router_->counters();
  status.counters.insert(status.counters.end(), {{"calls", c.calls},
                                                 {"refused_messages", c.refused_messages},
                                                 {"refused_by_policy", c.refused_by_policy},
                                                 {"policy_timeouts", c.policy_timeouts},
                                                 {"approvals_asked", c.approvals_asked},
                                                 {"approvals_allowed", c.approvals_allowed},
                                                 {"approvals_denied", c.approvals_denied},
                                                 {"approvals_expired", c.approvals_expired},
                                                 {"approvals_waiting", router_->desk().size()},
                                                 {"timeouts", c.timeouts},
                                                 {"bad_upstream_messages", c.bad_upstream_messages},
                                                 {"stray_answers", c.stray_answers},
                                                 {"refused_asks", c.refused_asks},
                                                 {"dropped_events", c.dropped_events},
                                                 {"dropped_members", c.dropped_members},
                                                 {"dropped_records", router_->recorder().dropped()},
                                                 {"dropped_details", c.dropped_details},
                                                 {"refused_unrecorded", c.refused_unrecorded},
                                                 {"answers_withheld", c.answers_withheld}});
  status.collisions = router_->views().collisions();
  status.sessions = router_->clients().count();
  status.in_flight = router_->in_flight();
  status.calls = c.calls;
  // Until a policy's new process can decide, calls are refused.
  status.settled = settled() && std::none_of(policies_.begin(), policies_.end(), [](const auto &p) {
                     return p->near_policy != nullptr && p->near_policy->is_awaited();
                   });
  status.drained = drained();
  return status;
}

std::unique_ptr<LocalClient> HostImpl::connect(
    std::function<void(std::string_view message)> on_message) {
  return make_local_client(*this, std::move(on_message));
}

}  // namespace bulkhead
