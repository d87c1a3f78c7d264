#include "plugin_base/plugin_runtime.hpp"

#include <algorithm>

#include "plugin_base/load_options.hpp"
#include "profile/protected_paths.hpp"

namespace bulkhead {
namespace {

const PluginPart *part_of(const Instance &instance) noexcept {
  return static_cast<const PluginPart *>(instance.user);
}

}  // namespace

bool PluginPart::granted(std::string_view grant) const noexcept {
  return std::find(use.grants.begin(), use.grants.end(), grant) != use.grants.end();
}

PluginRuntime::PluginRuntime(Reactor &reactor, const Profile &profile, PluginRuntimeOptions options)
    : profile_(profile), options_(std::move(options)) {
  context_.reactor = &reactor;
  context_.name = "bulkhead";
  context_.version = BULKHEAD_VERSION;
  context_.state_dir = profile_.state_dir;
  context_.log = options_.log;
  context_.log_level = options_.log_level;
  context_.services = options_.services;
  context_.extra_ext = [this](Instance &instance, std::string_view id) -> const void * {
    return options_.find_table ? options_.find_table(*part_of(instance), id) : nullptr;
  };
  context_.children = [this](const Instance &instance) {
    return part_of(instance)->starts_children ? spawner_.get() : nullptr;
  };
  context_.signs = [](const Instance &instance) { return part_of(instance)->keeps_records; };
  context_.prints = [this](const Instance &instance) {
    return part_of(instance)->keeps_records ? prints() : nullptr;
  };
  if (options_.spawns) make_spawner();
}

void PluginRuntime::make_spawner() {
  SpawnOptions options;
  options.state_dir = profile_.state_dir;
  options.own = all_own_paths(profile_);
  options.programs = all_programs(profile_);
  options.require = profile_.isolation.require;
  options.adopt = options_.adopt_orphans;
  options.groups = std::move(options_.groups);
  options.reactor = context_.reactor;
  options.on_missing = [this] {
    if (options_.on_servers_missing) options_.on_servers_missing();
  };
  options.log = [this](std::int32_t level, std::string_view text) {
    if (options_.log && level >= options_.log_level) options_.log(level, "sandbox", text);
  };
  spawner_ = std::make_unique<Spawner>(std::move(options));
}

void PluginRuntime::protect_files() {
  if (spawner_ != nullptr) spawner_->protect(all_own_paths(profile_), all_programs(profile_));
}

Result<std::unique_ptr<Instance>> PluginRuntime::create(PluginPart &part) {
  const LoadOptions load = load_options(profile_, part.use);
  const auto &linked = options_.static_plugins;
  const auto entry = std::find_if(linked.begin(), linked.end(), [&](const auto &plugin) {
    return plugin.first == part.use.plugin;
  });
  auto library = entry != linked.end()
                     ? Library::from_entry(part.use.plugin, entry->second, nullptr, load)
                     : load_library(library_of(part.use), options_.checked_plugins, load);
  if (!library) return std::unexpected(library.error());
  auto instance = Instance::create(part.use.id, std::move(*library), context_, &part);
  if (!instance) return instance;
  if (auto configured = (*instance)->configure(part.use.config_json); !configured) {
    return std::unexpected(configured.error());
  }
  return instance;
}

Result<void> PluginRuntime::load(PluginPart &part) {
  auto instance = create(part);
  if (!instance) {
    part.failure = instance.error().text;
    return std::unexpected(instance.error());
  }
  part.instance = std::move(*instance);
  return {};
}

Result<void> PluginRuntime::start(PluginPart &part) {
  if (part.instance == nullptr) return {};
  auto started = part.instance->start();
  if (!started) part.failure = started.error().text;
  return started;
}

void PluginRuntime::stop(PluginPart &part) {
  if (part.instance == nullptr) return;
  const InstanceState state = part.instance->state();
  if (state == InstanceState::started || state == InstanceState::draining) part.instance->stop();
}

std::vector<std::string> PluginRuntime::servers_missing() const {
  return spawner_ == nullptr ? std::vector<std::string>() : spawner_->missing();
}

const bh_http_service *http_service_of(const PluginPart &part, void **self) {
  if (!part.runs()) return nullptr;
  const auto &provides = part.instance->library().manifest().provides;
  if (std::find(provides.begin(), provides.end(), BH_EXT_HTTP_SERVICE) == provides.end()) {
    return nullptr;
  }
  *self = part.instance->self();
  return part.instance->ext<bh_http_service>(BH_EXT_HTTP_SERVICE);
}

}  // namespace bulkhead
