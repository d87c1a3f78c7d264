#include "compartment/plugin_host.hpp"

#include <algorithm>

#include "bulkhead/cpp/basics.hpp"
#include "embed/abi_limits.hpp"

namespace bulkhead {

struct PluginHost::Receiver {
  Part &part;
  PluginHost &host;

  static Receiver of(void *ctx) noexcept {
    auto &part = static_cast<Part &>(*static_cast<PluginPart *>(Instance::of(ctx).user));
    return {part, *part.host};
  }
  Reactor &reactor() const noexcept { return host.reactor_; }
  const void *owner() const noexcept { return &host; }
  bool on_loop_thread() const noexcept { return std::this_thread::get_id() == host.thread_; }

  void lane_message(bh_lane lane, std::uint64_t exchange, std::string_view message) const {
    host.stub_->message(lane, exchange, message);
  }
  void lane_exchange_failed(bh_lane lane, std::uint64_t exchange,
                            const LaneFailure &failure) const {
    host.stub_->exchange_failed(lane, exchange, failure);
  }
  void lane_down(bh_lane lane, const LaneFailure &failure) const {
    host.stub_->lane_down(lane, failure);
  }
  void lane_closed(bh_lane lane) const { host.stub_->lane_closed(lane); }

  bh_status call_complete(bh_call call, std::uint32_t kind, std::string_view json) const {
    return host.stub_->complete(call, kind, json);
  }
  void call_progress(bh_call call, double value, double total, std::string_view message) const {
    host.stub_->progress(call, value, total, message);
  }
  void call_event(bh_call call, std::uint32_t kind, std::string_view detail) const {
    host.stub_->event(call, kind, detail);
  }
  void list_changed(std::uint32_t kind) const { host.stub_->list_changed(part.number, kind); }
  void resource_updated(std::string_view uri) const {
    host.stub_->resource_updated(part.number, uri);
  }

  struct Verdict {
    std::uint32_t kind;
    link::VerdictText text;
    std::string rewritten;
  };
  static Verdict copy(const bh_verdict &verdict) {
    return {verdict.verdict,
            {std::string(bh::view(verdict.rule)), std::string(bh::view(verdict.reason)),
             BH_HAS(bh_verdict, &verdict, flags) ? verdict.flags : 0},
            std::string(bh::view(verdict.arguments))};
  }
  void policy_decided(std::uint64_t number, const Verdict &verdict) const {
    if (host.policy_stub_ == nullptr) return;
    host.policy_stub_->decided(number, verdict.kind, verdict.text, verdict.rewritten);
  }
  void policy_filtered(std::uint64_t number, bool listed) const {
    if (host.policy_stub_ != nullptr) host.policy_stub_->filtered(number, listed);
  }
  void policy_changed() const {
    if (host.policy_stub_ != nullptr) host.policy_stub_->changed();
  }
  void records_committed(std::uint64_t below) const {
    if (host.telemetry_stub_ != nullptr) host.telemetry_stub_->committed(below);
  }

  static constexpr std::string_view http_missing =
      "no plugin in this compartment provides an HTTP client";
  const bh_http_service *http_service(void **self) const { return host.http_service(self); }
};

PluginHost::PluginHost(Slice slice, Reactor &reactor, PluginRuntimeOptions options)
    : slice_(std::move(slice)),
      reactor_(reactor),
      limits_(abi_limits(slice_.profile.limits)),
      tables_(limits_),
      log_(options.log),
      runtime_(reactor, slice_.profile, complete(std::move(options))) {
  runtime_.set_prints(std::make_shared<const SecretPrints>(slice_.prints));
  make_parts();
  stub_ = std::make_unique<link::ServerStub>(reactor_, limits_, plugins_, slice_.definitions);
  for (std::uint32_t i = 0; i < slice_.plugins.size(); ++i) {
    const PluginKind kind = slice_.plugins[i].kind;
    if (kind == PluginKind::policy) {
      policy_stub_ = std::make_unique<link::PolicyServerStub>(reactor_, limits_, plugins_[i]);
    } else if (kind == PluginKind::telemetry) {
      telemetry_stub_ = std::make_unique<link::TelemetryServerStub>(reactor_, plugins_[i]);
    }
  }
}

PluginRuntimeOptions PluginHost::complete(PluginRuntimeOptions options) {
  options.find_table = [this](const PluginPart &, std::string_view id) { return tables_.find(id); };
  options.spawns = slice_.privileges.exec;
  options.adopt_orphans = true;
  options.on_servers_missing = [this] {
    if (on_servers_missing) on_servers_missing();
  };
  return options;
}

void PluginHost::apply_settings(ServerSettings settings) {
  slice_.definitions = std::move(settings.definitions);
  slice_.profile.own_paths = std::move(settings.own_paths);
  slice_.profile.programs = std::move(settings.programs);
  runtime_.protect_files();
}

void PluginHost::make_parts() {
  plugins_.resize(slice_.plugins.size());
  for (std::uint32_t i = 0; i < slice_.plugins.size(); ++i) {
    const auto &[kind, use] = slice_.plugins[i];
    Part &part = *parts_.emplace_back(std::make_unique<Part>());
    part.use = use;
    part.starts_children = kind == PluginKind::connector;
    part.keeps_records = kind == PluginKind::telemetry;
    part.host = this;
    part.number = i;
    plugins_[i].id = link_name(kind, use.id);
  }
}

void PluginHost::attach(OwnedFd trunk, std::function<void()> on_lost) {
  if (policy_stub_ != nullptr) return policy_stub_->attach(std::move(trunk), std::move(on_lost));
  if (telemetry_stub_ != nullptr) {
    return telemetry_stub_->attach(std::move(trunk), std::move(on_lost));
  }
  stub_->attach(std::move(trunk), std::move(on_lost));
}

std::vector<control::ReadyPlugin> PluginHost::running() const {
  std::vector<control::ReadyPlugin> out;
  for (const auto &part : parts_) {
    control::ReadyPlugin &one = out.emplace_back();
    if (part->instance == nullptr) continue;
    const Library &library = part->instance->library();
    one.path = part->use.file.path.empty() ? library.path() : part->use.file.path;
    one.version = library.manifest().version;
  }
  return out;
}

std::uint32_t PluginHost::telemetry_needs() const {
  return telemetry_stub_ == nullptr || slice_.trial ? 0 : telemetry_stub_->needs();
}

PluginHost::~PluginHost() {
  stop();
  reactor_.forget(this);
}

std::vector<std::string> PluginHost::servers_missing() const {
  return runtime_.servers_missing();
}

void PluginHost::log(std::int32_t level, const std::string &component,
                     const std::string &text) const {
  if (log_ && level >= slice_.log_level) log_(level, component, text);
}

Result<void> PluginHost::bring_up(Part &part) {
  if (auto loaded = runtime_.load(part); !loaded || slice_.trial) return loaded;
  auto started = PluginRuntime::start(part);
  if (!started) part.instance.reset();
  return started;
}

// Returns an error only if the profile requires the plugin and the plugin is not a connector. If a
// connector fails, the host continues without it, and only the connector's servers fail.
Result<void> PluginHost::note_failure(Part &part, const Error &error, const std::string &text) {
  plugins_[part.number].failure = error.text;
  const bool connector = slice_.plugins[part.number].kind == PluginKind::connector;
  if (part.use.required && !connector) return fail(error.code, text);
  log(BH_LOG_WARN, part.use.id, text + "; continuing without it");
  return {};
}

Result<void> PluginHost::start() {
  for (const auto &part : parts_) {
    if (slice_.plugins[part->number].kind == PluginKind::service) continue;
    if (auto up = bring_up(*part); !up) {
      if (auto noted = note_failure(*part, up.error(), up.error().text); !noted) return noted;
      continue;
    }
    plugins_[part->number].self = part->instance->self();
    const char *lacks = find_tables(part->number);
    if (lacks == nullptr) continue;
    const std::string text =
        "plugin \"" + part->use.plugin + "\" of \"" + part->use.id + "\": " + lacks;
    if (auto noted = note_failure(*part, {BH_E_INVALID, lacks}, text); !noted) return noted;
  }
  return {};
}

// Stores the plugin's tables. Returns null on success, or an error message if the plugin is not of
// the kind that the profile expects.
const char *PluginHost::find_tables(std::uint32_t number) {
  const Instance &instance = *parts_[number]->instance;
  link::ServedPlugin &plugin = plugins_[number];
  switch (slice_.plugins[number].kind) {
    case PluginKind::connector:
      plugin.connector = instance.ext<bh_connector>(BH_EXT_CONNECTOR);
      return plugin.connector == nullptr ? "the plugin is not a connector" : nullptr;
    case PluginKind::policy:
      plugin.policy = instance.ext(BH_EXT_POLICY, &bh_policy::filter);
      plugin.state = instance.ext(BH_EXT_STATE, &bh_state::import_state);
      plugin.log = [this, id = parts_[number]->use.id](std::string_view text) {
        log(BH_LOG_WARN, id, std::string(text));
      };
      return plugin.policy == nullptr ? "the plugin is not a policy" : nullptr;
    case PluginKind::telemetry:
      plugin.telemetry = instance.ext(BH_EXT_TELEMETRY, &bh_telemetry::batch);
      plugin.counters = [&instance] { return instance.counters(); };
      return plugin.telemetry == nullptr ? "the plugin does not accept telemetry" : nullptr;
    default:
      plugin.tools = instance.ext<bh_tools>(BH_EXT_TOOLS);
      return plugin.tools == nullptr ? "the plugin does not offer tools" : nullptr;
  }
}

const bh_http_service *PluginHost::http_service(void **self) {
  if (!services_loaded_ && !released_) {
    // set before loading, so that a failed load is not retried on every request
    services_loaded_ = true;
    for (const auto &part : parts_) {
      if (slice_.plugins[part->number].kind != PluginKind::service) continue;
      if (auto up = bring_up(*part); !up) {
        plugins_[part->number].failure = up.error().text;
        log(BH_LOG_ERROR, part->use.id, up.error().text);
      }
    }
  }
  return find_http_service(parts_, self);
}

void PluginHost::wait_for(std::uint64_t timeout_ms, const std::function<bool()> &done) {
  bool over = false;
  const std::uint64_t timer =
      reactor_.timer_start(this, timeout_ms, bh::callback(&over, [](bool &flag) { flag = true; }));
  while (!over && !done()) reactor_.poll(-1);
  reactor_.timer_cancel(timer);
}

void PluginHost::stop(bool replaced) {
  if (stopped_) return;
  stopped_ = true;
  // Waits for in-flight calls. If the whole gateway is shutting down, it has already cancelled the
  // calls or closed the trunk.
  stub_->drain();
  wait_for(slice_.profile.limits.drain_ms, [this, replaced] {
    const bool decides = replaced && policy_stub_ != nullptr && !policy_stub_->drained();
    return stub_->drained() && !decides;
  });
  stub_->close_lanes();
  // A child process has two grace periods: one after its stdin is closed, and one after SIGTERM.
  wait_for(2 * slice_.profile.limits.shutdown_grace_ms + 1'000,
           [this] { return stub_->lanes() == 0; });
  released_ = true;
  PluginRuntime::stop_all(parts_);
  stub_.reset();
  policy_stub_.reset();
  telemetry_stub_.reset();
  parts_.clear();
}

}  // namespace bulkhead
