#include "embed/server_changes.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/scan.hpp"
#include "route/upstreams.hpp"
#include "route/views.hpp"

namespace bulkhead {
namespace {

constexpr std::size_t max_changes = 16;

}  // namespace

ServerChanges::ServerChanges(HostCore &core, ProfileReload &reload)
    : core_(core), reload_(reload) {}

std::vector<ServerDef> ServerChanges::all_servers(const Profile &profile,
                                                  std::vector<std::string> *refused) const {
  std::vector<ServerDef> all = profile.servers;
  for (const Added &added : added_) {
    for (const ServerDef &def : added.servers) {
      const bool taken = find_server(all, def.name) != nullptr ||
                         std::any_of(profile.tools.begin(), profile.tools.end(),
                                     [&](const PluginUse &use) { return use.id == def.name; });
      if (taken) {
        refused->push_back("server \"" + def.name + "\" of \"" + added.part->use.id +
                           "\" is skipped: the profile or another plugin already uses this name");
      } else if (const ProfileHold *hold =
                     find_hold(profile.server_holds, {"mcpServers", def.name})) {
        // The plugin may have added the server under a previous profile, which had no such hold.
        refused->push_back("server \"" + def.name + "\" of \"" + added.part->use.id +
                           "\" is skipped: " + hold->says);
      } else {
        all.push_back(def);
      }
    }
  }
  return all;
}

bh_status ServerChanges::replace_servers(Part &part, std::string_view definitions,
                                         std::uint64_t wait_ms, bh_control_done done, void *arg,
                                         bh_error *error) {
  if (core_.stopped || core_.stop_requested.load(std::memory_order_relaxed)) {
    return bh::fail(error, BH_E_UNAVAILABLE, "the gateway is stopping");
  }
  if (changes_.size() >= max_changes) {
    return bh::fail(error, BH_E_LIMIT, "too many server changes are in progress");
  }
  auto defined = read_definitions(definitions, core_.profile);
  if (!defined.has_value()) {
    return bh::fail(error, defined.error().code, defined.error().text);
  }
  auto change = std::make_unique<Change>();
  change->changes = this;
  change->part = &part;
  change->defined = std::move(*defined);
  change->wait_ms = wait_ms;
  change->done = done;
  change->arg = arg;
  changes_.push_back(std::move(change));
  core_.reactor->defer(&core_, bh::callback<&ServerChanges::apply_all>(this));
  return BH_PENDING;
}

void ServerChanges::apply_all() {
  if (core_.stopped || !core_.started) return;
  for (const auto &change : changes_) {
    if (change->applied) continue;
    change->applied = true;
    auto mine = std::find_if(added_.begin(), added_.end(),
                             [&](const Added &g) { return g.part == change->part; });
    if (mine == added_.end()) mine = added_.insert(added_.end(), Added{change->part, {}});
    mine->servers = change->defined.servers;
    std::vector<std::string> refused;
    std::vector<ServerDef> servers = all_servers(core_.profile, &refused);
    refuse_taken(servers, change.get());
    // Cannot fail: the profile is the same, so no required plugin is loaded and no policy is
    // reconfigured.
    auto report = reload_.apply(core_.profile, std::move(servers));
    if (report.has_value()) change->report = *std::move(report);
    change->timer = core_.reactor->timer_start(&core_, change->wait_ms,
                                               bh::callback(change.get(), [](Change &late) {
                                                 late.timer = 0;
                                                 late.over = true;
                                                 late.changes->check_later();
                                               }));
  }
  check_later();
}

// Rejects definitions whose names the profile or another plugin already uses.
void ServerChanges::refuse_taken(const std::vector<ServerDef> &servers, Change *change) const {
  std::erase_if(change->defined.servers, [&](const ServerDef &def) {
    const auto same = [&](const ServerDef &other) { return other.name == def.name; };
    const auto at = std::find_if(servers.begin(), servers.end(), same);
    if (at != servers.end() && *at == def) return false;
    change->defined.refused.push_back(
        {def.name, "the profile or another plugin already uses this name"});
    return true;
  });
}

void ServerChanges::check_later() {
  if (changes_.empty() || std::exchange(check_pending_, true)) return;
  core_.reactor->defer(&core_, bh::callback<&ServerChanges::check>(this));
}

void ServerChanges::check() {
  check_pending_ = false;
  if (core_.stopped) return;
  const bool quiet = core_.drained() && core_.route().clients.views.all_settled();
  std::vector<std::unique_ptr<Change>> ended;
  std::erase_if(changes_, [&](std::unique_ptr<Change> &change) {
    if (!change->applied || !(quiet || change->over)) return false;
    ended.push_back(std::move(change));
    return true;
  });
  for (const auto &change : ended) {
    core_.reactor->timer_cancel(change->timer);
    const std::string text = report(*change);
    change->done(change->arg, bh::str(text));
  }
}

void ServerChanges::drop() {
  for (const auto &change : changes_) core_.reactor->timer_cancel(change->timer);
  changes_.clear();
}

std::string ServerChanges::report(const Change &change) const {
  std::string failed, refused;
  const auto entry = [](std::string *list, std::string_view name, std::string_view reason) {
    list->append(list->empty() ? "{" : ",{");
    bh::json::append_member(list, "name", name);
    bh::json::append_member(list, "reason", reason);
    list->append("}");
  };
  std::uint32_t ready = 0;
  for (const auto &upstream : core_.route().servers.list.all()) {
    const auto same = [&](const ServerDef &def) { return def.name == upstream->name(); };
    const auto &mine = change.defined.servers;
    if (std::none_of(mine.begin(), mine.end(), same)) continue;
    const ServerStatus status = upstream->status();
    if (status.state == ServerState::ready) ++ready;
    if (status.state == ServerState::failed) entry(&failed, status.name, status.reason);
    if (status.state == ServerState::connecting) {
      entry(&failed, status.name, status.reason.empty() ? "still connecting" : status.reason);
    }
  }
  for (const auto &r : change.defined.refused) entry(&refused, r.name, r.reason);
  const ApplyReport &applied = change.report;
  return "{\"added\":" + std::to_string(applied.added.size()) +
         ",\"changed\":" + std::to_string(applied.changed.size() + applied.adjusted.size()) +
         ",\"removed\":" + std::to_string(applied.removed.size()) +
         ",\"unchanged\":" + std::to_string(applied.unchanged) +
         ",\"ready\":" + std::to_string(ready) + ",\"failed\":[" + failed + "],\"refused\":[" +
         refused + "]}";
}

}  // namespace bulkhead
