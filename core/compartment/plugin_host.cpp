#include "compartment/plugin_host.hpp"

#include <algorithm>

#include "bulkhead/abi/ext/draft/event.h"
#include "bulkhead/cpp/basics.hpp"
#include "embed/abi_limits.hpp"
#include "reactor/post_owned.hpp"

namespace bulkhead {
namespace {

PluginHost::Part &part_of(void *ctx) noexcept {
  return *static_cast<PluginHost::Part *>(Instance::of(ctx).user);
}
PluginHost &host_of(void *ctx) noexcept {
  return *part_of(ctx).host;
}

// f on the loop's thread: now if this is it, else in a later turn.
template <class F>
bh_status on_loop(void *ctx, F f) {
  PluginHost &host = host_of(ctx);
  if (!host.on_loop_thread()) return post_owned(host.reactor(), &host, std::move(f));
  f();
  return BH_OK;
}

// ---- connector -------------------------------------------------------------------------------

void lane_message(void *ctx, bh_lane lane, std::uint64_t exchange, bh_str message) {
  host_of(ctx).far().message(lane, exchange, bh::view(message));
}
void exchange_failed(void *ctx, bh_lane lane, std::uint64_t exchange, const bh_error *error) {
  host_of(ctx).far().exchange_failed(lane, exchange, error);
}
void lane_down(void *ctx, bh_lane lane, const bh_error *error) {
  host_of(ctx).far().lane_down(lane, error);
}
void lane_closed(void *ctx, bh_lane lane) {
  host_of(ctx).far().lane_closed(lane);
}

// ---- tools -----------------------------------------------------------------------------------

bh_status complete(void *ctx, bh_call call, const bh_result *result) {
  auto json = std::make_shared<bh::Buf>(result->json);
  const std::uint32_t kind = result->kind;
  if (host_of(ctx).on_loop_thread()) return host_of(ctx).far().complete(call, kind, json->view());
  return on_loop(
      ctx, [ctx, call, kind, json] { host_of(ctx).far().complete(call, kind, json->view()); });
}
void progress(void *ctx, bh_call call, double value, double total, bh_str message) {
  on_loop(ctx, [ctx, call, value, total, text = std::string(bh::view(message))] {
    host_of(ctx).far().progress(call, value, total, text);
  });
}
void event(void *ctx, bh_call call, std::uint32_t kind, bh_str detail) {
  if (detail.n > BH_EVENT_BYTES) return;
  on_loop(ctx, [ctx, call, kind, text = std::string(bh::view(detail))] {
    host_of(ctx).far().event(call, kind, text);
  });
}
void list_changed(void *ctx, std::uint32_t kind) {
  on_loop(ctx, [ctx, kind] { host_of(ctx).far().list_changed(part_of(ctx).number, kind); });
}
void resource_updated(void *ctx, bh_str uri) {
  on_loop(ctx, [ctx, text = std::string(bh::view(uri))] {
    host_of(ctx).far().resource_updated(part_of(ctx).number, text);
  });
}

// ---- policy ----------------------------------------------------------------------------------

// Always posted: the plugin may call these from inside the question that they answer.
template <class F>
bh_status to_policy(void *ctx, F f) {
  return post_owned(host_of(ctx).reactor(), &host_of(ctx), [ctx, f = std::move(f)] {
    if (link::FarPolicy *policy = host_of(ctx).far_policy()) f(*policy);
  });
}

bh_status decided(void *ctx, std::uint64_t number, const bh_verdict *verdict) {
  const link::VerdictText text{std::string(bh::view(verdict->rule)),
                               std::string(bh::view(verdict->reason)),
                               BH_HAS(bh_verdict, verdict, flags) ? verdict->flags : 0};
  return to_policy(ctx, [number, kind = verdict->verdict, text,
                         rewritten = std::string(bh::view(verdict->arguments))](auto &policy) {
    policy.decided(number, kind, text, rewritten);
  });
}
void changed(void *ctx) {
  to_policy(ctx, [](auto &policy) { policy.changed(); });
}
bh_status filtered(void *ctx, std::uint64_t number, std::uint32_t listed) {
  return to_policy(ctx, [number, listed](auto &policy) { policy.filtered(number, listed == 1); });
}

// ---- telemetry -------------------------------------------------------------------------------

// Always posted: batch() may call this.
void committed(void *ctx, std::uint64_t below) {
  post_owned(host_of(ctx).reactor(), &host_of(ctx), [ctx, below] {
    if (link::FarTelemetry *telemetry = host_of(ctx).far_telemetry()) telemetry->committed(below);
  });
}

// ---- http ------------------------------------------------------------------------------------

bh_status http_start(void *ctx, const bh_http_request *request, const bh_http_handler *handler,
                     void *user, bh_http_id *out, bh_error *error) {
  void *self = nullptr;
  const bh_http_service *service = host_of(ctx).http_service(&self);
  if (service == nullptr) {
    return bh::fail(error, BH_E_UNSUPPORTED, "no plugin of this compartment offers an HTTP client");
  }
  return service->start(self, request, handler, user, out, error);
}
bh_status http_cancel(void *ctx, bh_http_id id) {
  void *self = nullptr;
  const bh_http_service *service = host_of(ctx).http_service(&self);
  return service == nullptr ? BH_STALE : service->cancel(self, id);
}

constexpr bh_host_tools tools_table{sizeof(bh_host_tools), 0, complete, progress, list_changed,
                                    resource_updated};
constexpr bh_host_policy policy_table{sizeof(bh_host_policy), 0, decided, changed, filtered};
constexpr bh_host_event event_table{sizeof(bh_host_event), 0, event};
constexpr bh_host_telemetry telemetry_table{sizeof(bh_host_telemetry), 0, committed};
constexpr bh_host_http http_table{sizeof(bh_host_http), 0, http_start, http_cancel};

}  // namespace

PluginHost::PluginHost(Slice slice, HostContext context,
                       std::map<std::string, CheckedLibrary> checked,
                       std::shared_ptr<ServerGroups> groups)
    : slice_(std::move(slice)),
      context_(std::move(context)),
      checked_(std::move(checked)),
      limits_(abi_limits(slice_.profile.limits)) {
  static bh_host_connector connector_table{
      sizeof(bh_host_connector), 0, nullptr, lane_message, exchange_failed, lane_down, lane_closed};
  connector_table.limits = &limits_;
  context_.extra_ext = [](Instance &, std::string_view id) -> const void * {
    if (id == BH_EXT_HOST_CONNECTOR) return &connector_table;
    if (id == BH_EXT_HOST_TOOLS) return &tools_table;
    if (id == BH_EXT_HOST_POLICY) return &policy_table;
    if (id == BH_EXT_HOST_EVENT) return &event_table;
    if (id == BH_EXT_HOST_TELEMETRY) return &telemetry_table;
    if (id == BH_EXT_HOST_HTTP) return &http_table;
    return nullptr;
  };
  if (slice_.privileges.exec) {
    SpawnOptions options;
    options.state_dir = slice_.profile.state_dir;
    options.own = slice_.profile.own_paths;
    options.require = slice_.profile.isolation.require;
    options.adopt = true;
    options.groups = std::move(groups);
    options.reactor = context_.reactor;
    options.log = [this](std::int32_t level, std::string_view text) {
      log(level, "sandbox", std::string(text));
    };
    options.on_missing = [this] {
      if (on_servers_missing) on_servers_missing();
    };
    spawner_ = std::make_unique<Spawner>(std::move(options));
    context_.children = [this](const Instance &instance) -> Spawner * {
      const auto *part = static_cast<const Part *>(instance.user);
      const bool connector =
          part != nullptr && slice_.plugins[part->number].kind == PluginKind::connector;
      return connector ? spawner_.get() : nullptr;
    };
  }
  context_.signs = [this](const Instance &instance) {
    const auto *part = static_cast<const Part *>(instance.user);
    return part != nullptr && slice_.plugins[part->number].kind == PluginKind::telemetry;
  };
  const auto prints = std::make_shared<const SecretPrints>(slice_.prints);
  context_.prints = [this, prints](const Instance &instance) {
    return context_.signs(instance) ? prints : nullptr;
  };
  plugins_.resize(slice_.plugins.size());
  for (std::uint32_t i = 0; i < slice_.plugins.size(); ++i) {
    parts_.push_back(std::make_unique<Part>());
    parts_.back()->host = this;
    parts_.back()->number = i;
    plugins_[i].id = link_name(slice_.plugins[i].kind, slice_.plugins[i].use.id);
  }
  far_ = std::make_unique<link::Far>(*context_.reactor, limits_, plugins_, slice_.definitions);
  for (std::uint32_t i = 0; i < slice_.plugins.size(); ++i) {
    const PluginKind kind = slice_.plugins[i].kind;
    if (kind == PluginKind::policy) {
      far_policy_ = std::make_unique<link::FarPolicy>(reactor(), limits_, plugins_[i]);
    } else if (kind == PluginKind::telemetry) {
      far_telemetry_ = std::make_unique<link::FarTelemetry>(reactor(), plugins_[i]);
    }
  }
}

void PluginHost::attach(OwnedFd trunk, std::function<void()> on_lost) {
  if (far_policy_ != nullptr) return far_policy_->attach(std::move(trunk), std::move(on_lost));
  if (far_telemetry_ != nullptr) {
    return far_telemetry_->attach(std::move(trunk), std::move(on_lost));
  }
  far_->attach(std::move(trunk), std::move(on_lost));
}

std::uint32_t PluginHost::telemetry_needs() const {
  return far_telemetry_ == nullptr ? 0 : far_telemetry_->needs();
}

PluginHost::~PluginHost() {
  stop();
  context_.reactor->forget(this);
}

std::vector<std::string> PluginHost::servers_missing() const {
  return spawner_ == nullptr ? std::vector<std::string>() : spawner_->missing();
}

void PluginHost::log(std::int32_t level, const std::string &component,
                     const std::string &text) const {
  if (context_.log && level >= context_.log_level) context_.log(level, component, text);
}

Result<void> PluginHost::bring_up(Part &part, const PluginUse &use) {
  LoadOptions options;
  options.dirs = slice_.profile.plugin_dirs;
  options.init_timeout_ms = slice_.profile.limits.plugin_init_ms;
  options.sha256 = use.sha256;
  auto library = load_library(use.plugin, checked_, options);
  if (!library) return std::unexpected(library.error());
  auto instance = Instance::create(use.id, std::move(*library), context_);
  if (!instance) return std::unexpected(instance.error());
  part.instance = std::move(*instance);
  part.instance->user = &part;
  if (auto configured = part.instance->configure(use.config_json); !configured) return configured;
  if (auto started = part.instance->start(); !started) return started;
  part.started = true;
  return {};
}

Result<void> PluginHost::start() {
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    const SlicePlugin &wanted = slice_.plugins[i];
    if (wanted.kind == PluginKind::service) continue;
    Part &part = *parts_[i];
    if (auto up = bring_up(part, wanted.use); !up) {
      if (wanted.use.required && wanted.kind != PluginKind::connector) return up;
      log(BH_LOG_WARN, wanted.use.id, up.error().text + " (going on without it)");
      plugins_[i].failure = up.error().text;
      part.instance.reset();
      continue;
    }
    plugins_[i].self = part.instance->self();
    const char *lacks = find_tables(i);
    if (lacks == nullptr) continue;
    plugins_[i].failure = lacks;
    const std::string text =
        "plugin \"" + wanted.use.plugin + "\" of \"" + wanted.use.id + "\": " + lacks;
    if (wanted.use.required && wanted.kind != PluginKind::connector) {
      return fail(BH_E_INVALID, text);
    }
    log(BH_LOG_WARN, wanted.use.id, text + " (going on without it)");
  }
  return {};
}

// What it is not, if it is not what the profile takes it for; else null.
const char *PluginHost::find_tables(std::uint32_t number) {
  const Instance &instance = *parts_[number]->instance;
  link::FarPlugin &plugin = plugins_[number];
  switch (slice_.plugins[number].kind) {
    case PluginKind::connector:
      plugin.connector = instance.ext<bh_connector>(BH_EXT_CONNECTOR);
      return plugin.connector == nullptr ? "the plugin is not a connector" : nullptr;
    case PluginKind::policy:
      plugin.policy = instance.ext(BH_EXT_POLICY, &bh_policy::filter);
      return plugin.policy == nullptr ? "the plugin is no policy" : nullptr;
    case PluginKind::telemetry:
      plugin.telemetry = instance.ext(BH_EXT_TELEMETRY, &bh_telemetry::batch);
      plugin.counters = [&instance] { return instance.counters(); };
      return plugin.telemetry == nullptr ? "the plugin takes no telemetry" : nullptr;
    default:
      plugin.tools = instance.ext<bh_tools>(BH_EXT_TOOLS);
      return plugin.tools == nullptr ? "the plugin offers no tools" : nullptr;
  }
}

const bh_http_service *PluginHost::http_service(void **self) {
  for (std::uint32_t i = 0; i < parts_.size(); ++i) {
    const SlicePlugin &wanted = slice_.plugins[i];
    Part &part = *parts_[i];
    if (wanted.kind != PluginKind::service) continue;
    if (!part.started && plugins_[i].failure.empty() && !stopped_) {
      if (auto up = bring_up(part, wanted.use); !up) {
        plugins_[i].failure = up.error().text;  // not again for every request
        log(BH_LOG_ERROR, wanted.use.id, up.error().text);
      }
    }
    if (!part.started) continue;
    const auto *service = part.instance->ext<bh_http_service>(BH_EXT_HTTP_SERVICE);
    if (service == nullptr) continue;
    *self = part.instance->self();
    return service;
  }
  return nullptr;
}

void PluginHost::stop() {
  if (stopped_) return;
  stopped_ = true;
  bool over = false;
  // Calls that were begun end here; a gateway that stops has cancelled them, or has closed the
  // trunk.
  far_->drain();
  const std::uint64_t drain_timer = reactor().timer_start(
      this, slice_.profile.limits.drain_ms, [](void *arg) { *static_cast<bool *>(arg) = true; },
      &over);
  while (!over && !far_->drained()) reactor().poll(-1);
  reactor().timer_cancel(drain_timer);
  over = false;
  far_->close_lanes();
  // Children get their grace twice: for the closed stdin and for SIGTERM.
  const std::uint64_t grace = 2 * slice_.profile.limits.shutdown_grace_ms + 1'000;
  const std::uint64_t timer = reactor().timer_start(
      this, grace, [](void *arg) { *static_cast<bool *>(arg) = true; }, &over);
  while (!over && far_->lanes() != 0) reactor().poll(-1);
  reactor().timer_cancel(timer);
  for (auto part = parts_.rbegin(); part != parts_.rend(); ++part) {
    if ((*part)->started) (*part)->instance->stop();
  }
  far_.reset();
  far_policy_.reset();
  far_telemetry_.reset();
  parts_.clear();
}

}  // namespace bulkhead
