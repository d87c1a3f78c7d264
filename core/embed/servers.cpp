#include "embed/servers.hpp"

#include <algorithm>
#include <filesystem>

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/scan.hpp"
#include "profile/difference.hpp"
#include "route/upstreams.hpp"

namespace bulkhead {
namespace {

// Returns the path of a server's stderr log. Server names contain only [A-Za-z0-9_.-], so they need
// no escaping.
std::string stderr_file(const std::string &state_dir, const std::string &server) {
  return state_dir + "/log/servers/" + server + ".log";
}

}  // namespace

const ServerDef *find_server(const std::vector<ServerDef> &servers, std::string_view name) {
  const auto at = std::find_if(servers.begin(), servers.end(),
                               [name](const ServerDef &def) { return def.name == name; });
  return at == servers.end() ? nullptr : &*at;
}

// Creates the log folder. It is private because the logs may contain secrets. Without it,
// connectors keep only the last lines of each server's output, in memory.
void Servers::make_log_folder() const {
  const std::string log_folder = core_.profile.state_dir + "/log";
  std::error_code error;
  for (const std::string &folder : {log_folder, log_folder + "/servers"}) {
    std::filesystem::create_directories(folder, error);
    if (!error) {
      std::filesystem::permissions(folder, std::filesystem::perms::owner_all, error);
    }
    if (error)
      return core_.log(BH_LOG_WARN, "host", "cannot create " + folder + ": " + error.message());
  }
}

// Adds the values that the connector needs but that are not part of the server's definition in the
// profile.
ServerDef Servers::complete(const ServerDef &def) const {
  ServerDef copy = def;
  if (core_.profile.state_dir.empty()) return copy;
  std::string quoted = bh::json::quoted(stderr_file(core_.profile.state_dir, def.name));
  copy.extra["stderr_file"] = quoted;
  copy.extra["stderr_bytes"] = std::to_string(core_.profile.limits.stderr_bytes);
  return copy;
}

std::unique_ptr<Upstream> Servers::make(const ServerDef &def) {
  auto upstream = std::make_unique<Upstream>(core_.route().servers.lanes, complete(def));
  if (def.disabled || remote_.connect_upstream(*upstream, false)) return upstream;
  auto connector = plugins_.connector_for(def.type);
  if (!connector.has_value()) {
    upstream->unusable = connector.error().text;
    core_.log(BH_LOG_ERROR, def.name, upstream->unusable);
    return upstream;
  }
  upstream->connector = (*connector)->instance->ext<bh_connector>(BH_EXT_CONNECTOR);
  upstream->self = (*connector)->instance->self();
  if (upstream->connector == nullptr) {
    upstream->unusable = "plugin \"" + (*connector)->use.plugin + "\" is not a connector";
  }
  return upstream;
}

std::unique_ptr<Upstream> Servers::make(Part &tools) {
  ServerDef def;
  def.name = tools.use.id;
  def.type = tools.use.plugin;
  auto upstream = std::make_unique<Upstream>(core_.route().servers.lanes, std::move(def));
  tools.upstream = upstream.get();
  if (remote_.connect_upstream(*upstream, true)) return upstream;
  if (tools.instance != nullptr && tools.failure.empty()) {
    upstream->tools = tools.instance->ext<bh_tools>(BH_EXT_TOOLS);
    upstream->self = tools.instance->self();
    if (upstream->tools == nullptr) {
      tools.failure = "plugin \"" + tools.use.plugin + "\" does not offer tools";
    }
  }
  upstream->unusable = tools.failure;
  return upstream;
}

Result<void> Servers::add_all() {
  if (!core_.profile.servers.empty() && !core_.profile.state_dir.empty()) make_log_folder();
  running_ = core_.profile.servers;
  for (const ServerDef &def : running_) core_.route().servers.list.add(make(def));
  for (const auto &part : plugins_.tools()) {
    core_.route().servers.list.add(make(*part));
    const bool broken = part->instance != nullptr && !part->failure.empty();
    if (broken && part->use.required) return fail(BH_E_INVALID, part->failure);
  }
  return {};
}

void Servers::drop_failed_connectors() {
  for (const auto &part : plugins_.connectors()) {
    if (part->failure.empty()) continue;
    for (const auto &upstream : core_.route().servers.list.all()) {
      if (part->instance == nullptr || upstream->self != part->instance->self()) continue;
      upstream->connector = nullptr;
      upstream->unusable = part->failure;
    }
  }
}

NextUpstream Servers::next(const ServerDef &def, ApplyReport *report) {
  NextUpstream next;
  Upstream *old = nullptr;
  for (const auto &upstream : core_.route().servers.list.all()) {
    if (upstream->name() == def.name) old = upstream.get();
  }
  const ServerDef *was = find_server(running_, def.name);
  const bool usable = old != nullptr && was != nullptr && old->unusable.empty();
  if (usable && same_wire(*was, def)) {
    next.kept = old;
    if (same_server(*was, def)) {
      ++report->unchanged;
    } else {
      next.redefined = complete(def);
      report->adjusted.push_back(def.name);
    }
    return next;
  }
  next.fresh = make(def);
  next.replaces = old;
  (old == nullptr ? report->added : report->changed).push_back(def.name);
  return next;
}

NextUpstream Servers::next(Part &tools, bool fresh, ApplyReport *report) {
  NextUpstream next;
  if (!fresh) {
    next.kept = tools.upstream;
    ++report->unchanged;
    return next;
  }
  for (const auto &upstream : core_.route().servers.list.all()) {
    if (upstream->name() == tools.use.id) next.replaces = upstream.get();
  }
  next.fresh = make(tools);
  (next.replaces == nullptr ? report->added : report->changed).push_back(tools.use.id);
  return next;
}

}  // namespace bulkhead
