#include "embed/host_plugins.hpp"

#include <sodium/randombytes.h>

#include <algorithm>
#include <utility>

#include "embed/profile_prints.hpp"
#include "route/draining.hpp"

namespace bulkhead {

// ---- loading ---------------------------------------------------------------------------------

Result<void> HostPlugins::load(PluginRuntimeOptions options, MakeStub make_stub) {
  runtime_ = std::make_unique<PluginRuntime>(*core_.reactor, core_.profile, std::move(options));
  make_stub_ = std::move(make_stub);
  use_prints();
  const Profile &profile = core_.profile;
  if (auto added = add("telemetry", profile.telemetry, &telemetry_); !added) return added;
  if (auto added = add("policies", profile.policies, &policies_); !added) return added;
  if (auto added = add("tools", profile.tools, &tools_); !added) return added;
  return add("transports", profile.transports, &transports_);
}

Result<void> HostPlugins::add(std::string_view group, const std::vector<PluginUse> &uses,
                              Parts *parts) {
  for (const PluginUse &use : uses) {
    auto part = make(group, use);
    if (!part.has_value()) return std::unexpected(part.error());
    parts->push_back(std::move(*part));
  }
  return {};
}

std::unique_ptr<Part> HostPlugins::new_part(const PluginUse &use) {
  auto part = std::make_unique<Part>();
  part->host = &host_;
  part->use = use;
  return part;
}

// Creates a part and, unless its plugin runs in another process, loads the plugin.
Result<std::unique_ptr<Part>> HostPlugins::make(std::string_view group, const PluginUse &use) {
  auto part = new_part(use);
  part->keeps_records = group == "telemetry";
  if (make_stub_(group, *part)) return part;
  return load_part(std::move(part));
}

// Loads the plugin of a part. If loading fails but the plugin is not required, keeps the part so
// that the status can show the failure.
Result<std::unique_ptr<Part>> HostPlugins::load_part(std::unique_ptr<Part> part) {
  auto loaded = runtime_->load(*part);
  if (loaded.has_value()) return part;
  if (part->use.required) return std::unexpected(loaded.error());
  report_skipped(*part);
  return part;
}

void HostPlugins::report_skipped(const Part &part) const {
  core_.log(BH_LOG_WARN, part.use.id,
            part.failure + "; continuing without it, as the profile allows");
}

Result<Part *> HostPlugins::connector_for(const std::string &type) {
  const auto at = core_.profile.connectors.find(type);
  if (at == core_.profile.connectors.end()) {
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
  auto part = new_part(use);
  part->starts_children = connects_children(use.plugin);
  // A connector is not required, so load_part() returns the part even if loading fails.
  connectors_.push_back(*load_part(std::move(part)));
  Part &made = *connectors_.back();
  if (core_.started) static_cast<void>(start(made));
  if (!made.failure.empty()) return fail(BH_E_UNAVAILABLE, made.failure);
  return &made;
}

// Returns true if the profile assigns this connector to stdio servers. Only such a connector can
// use bh.host.spawn/1.
bool HostPlugins::connects_children(const std::string &plugin) const {
  const Profile &profile = core_.profile;
  const auto is_connector_of = [&](const std::string &type) {
    const auto at = profile.connectors.find(type);
    return at != profile.connectors.end() && at->second == plugin;
  };
  return is_connector_of("stdio") ||
         std::any_of(profile.servers.begin(), profile.servers.end(), [&](const ServerDef &def) {
           return !def.command.empty() && is_connector_of(def.type);
         });
}

void HostPlugins::load_services() {
  services_loaded_ = true;  // set even if loading fails, so that it is not retried for each request
  for (const PluginUse &use : core_.profile.services) {
    auto part = load_part(new_part(use));
    if (!part.has_value()) {
      core_.log(BH_LOG_ERROR, use.id, part.error().text);
      continue;
    }
    services_.push_back(std::move(*part));
    if (auto up = start(*services_.back()); !up.has_value()) {
      core_.log(BH_LOG_ERROR, use.id, up.error().text);
    }
  }
}

const bh_http_service *HostPlugins::http_service(void **self) {
  if (!services_loaded_ && !core_.stopped) load_services();
  return find_http_service(services_, self);
}

void HostPlugins::use_prints() {
  if (prints_key_.empty()) {
    prints_key_.resize(32);
    ::randombytes_buf(prints_key_.data(), prints_key_.size());  // terminates the process on failure
  }
  runtime_->set_prints(std::make_shared<const SecretPrints>(prints_of(core_.profile, prints_key_)));
}

// ---- starting and stopping -------------------------------------------------------------------

Result<void> HostPlugins::start(Part &part) {
  auto started = PluginRuntime::start(part);
  if (started.has_value() || part.use.required) return started;
  if (part.upstream != nullptr) {
    part.upstream->unusable = part.failure;
    part.upstream->tools = nullptr;
  }
  report_skipped(part);
  return {};
}

Result<void> HostPlugins::start_all() {
  for (const Parts *parts : {&telemetry_, &policies_, &connectors_, &tools_, &transports_}) {
    for (const auto &part : *parts) {
      if (auto up = start(*part); !up.has_value()) return up;
    }
  }
  return {};
}

void HostPlugins::stop_users() {
  for (Parts *parts : {&transports_, &connectors_, &tools_, &leaving_}) {
    PluginRuntime::stop_all(*parts);
  }
}

void HostPlugins::stop_recorders() {
  for (Parts *parts : {&telemetry_, &policies_, &services_}) PluginRuntime::stop_all(*parts);
}

void HostPlugins::clear() {
  while (!ended_.empty()) forget_ended();
  for (Parts *parts :
       {&transports_, &connectors_, &tools_, &leaving_, &telemetry_, &policies_, &services_}) {
    parts->clear();
  }
}

// ---- reload ----------------------------------------------------------------------------------

std::unique_ptr<Part> HostPlugins::take_tools(const Part *part) {
  const auto at = std::find_if(tools_.begin(), tools_.end(),
                               [&](const auto &mine) { return mine.get() == part; });
  auto taken = std::move(*at);
  tools_.erase(at);
  return taken;
}

void HostPlugins::exchange_tools(Parts next) {
  for (auto &part : std::exchange(tools_, std::move(next))) leaving_.push_back(std::move(part));
}

// Stops the plugins that a reload has removed, once they have no in-flight calls.
void HostPlugins::end_left() {
  Parts ended;
  std::erase_if(leaving_, [&](std::unique_ptr<Part> &part) {
    if (part->upstream != nullptr && core_.route().servers.draining.has(part->upstream))
      return false;
    // The upstream no longer exists, but the plugin may still report list changes.
    part->upstream = nullptr;
    ended.push_back(std::move(part));
    return true;
  });
  if (ended.empty()) return;
  PluginRuntime::stop_all(ended);
  // The parts must be freed later, because functions that these plugins have posted still use them.
  ended_.push_back(std::move(ended));
  const auto forget = bh::callback<&HostPlugins::forget_ended>(this);
  if (core_.reactor->post(&core_, forget) != BH_OK) forget_ended();
}

void HostPlugins::forget_ended() {
  for (std::unique_ptr<Part> &part : ended_.front()) {
    const bool abandoned = part->instance != nullptr && part->instance->abandoned();
    part->instance.reset();
    // If the instance was abandoned, one of its functions may still be running on the thread pool
    // and using the part. The part is then never freed.
    if (abandoned) static_cast<void>(part.release());
  }
  ended_.pop_front();
}

}  // namespace bulkhead
