// Another profile while the host runs: what is the same stays, what is new is made first, and only
// then the router gets the new set in one step.
#include <algorithm>
#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "corporation/holds.hpp"
#include "embed/host_impl.hpp"
#include "plugin/config_schema.hpp"
#include "profile/difference.hpp"
#include "profile/policy_mark.hpp"

namespace bulkhead {
namespace {

const ServerDef *find_server(const std::vector<ServerDef> &servers, std::string_view name) {
  const auto at = std::find_if(servers.begin(), servers.end(),
                               [name](const ServerDef &def) { return def.name == name; });
  return at == servers.end() ? nullptr : &*at;
}

std::string summary(const ApplyReport &report) {
  std::string text;
  const auto add = [&](std::string_view what, const std::vector<std::string> &names) {
    if (names.empty()) return;
    text.append(text.empty() ? "" : "; ").append(what);
    for (std::size_t i = 0; i < names.size(); ++i)
      text.append(i == 0 ? " " : ", ").append(names[i]);
  };
  add("added", report.added);
  add("changed", report.changed);
  add("adjusted", report.adjusted);
  add("removed", report.removed);
  add("settings", report.settings);
  if (!report.policy.empty()) {
    text.append(text.empty() ? "" : "; ");
    text.append("policy: ").append(describe_changes(report.policy_mark));
  }
  if (text.empty()) text = "no server has changed";
  return "reload: " + text + " (" + std::to_string(report.unchanged) + " unchanged)";
}

}  // namespace

// The tools plugins of the next profile, in its order: those that go on, and new ones.
struct HostImpl::NextTools {
  struct Entry {
    Part *kept = nullptr;
    std::unique_ptr<Part> fresh;
  };
  std::vector<Entry> entries;
};

Result<ApplyReport> HostImpl::apply(Profile next) {
  if (!started_ || stopped_) return fail(BH_E_UNAVAILABLE, "the gateway is not running");
  std::vector<std::string> refused;
  std::vector<ServerDef> servers = all_servers(next, &refused);
  for (const std::string &why : refused) log(BH_LOG_WARN, "host", why);
  return exchange(std::move(next), std::move(servers));
}

Result<ApplyReport> HostImpl::apply(Profile next, std::map<std::string, RemoteUse> remote) {
  std::map<std::string, RemoteUse> before = std::exchange(remote_, std::move(remote));
  auto report = apply(std::move(next));
  if (!report.has_value()) remote_ = std::move(before);
  return report;
}

bool HostImpl::drained() const {
  return router_ == nullptr || (router_->draining().size() == 0 && router_->wires().closing() == 0);
}

// The profile's servers, then those that plugins have given and whose names are free.
std::vector<ServerDef> HostImpl::all_servers(const Profile &profile,
                                             std::vector<std::string> *refused) const {
  std::vector<ServerDef> all = profile.servers;
  for (const Given &given : given_) {
    for (const ServerDef &def : given.servers) {
      const bool taken = find_server(all, def.name) != nullptr ||
                         std::any_of(profile.tools.begin(), profile.tools.end(),
                                     [&](const PluginUse &use) { return use.id == def.name; });
      if (taken) {
        refused->push_back("server \"" + def.name + "\" of \"" + given.part->use.id +
                           "\" is left out: the profile has one of that name");
      } else if (const ProfileHold *hold =
                     find_hold(profile.server_holds, {"mcpServers", def.name})) {
        // The profile that it was given under may have been another.
        refused->push_back("server \"" + def.name + "\" of \"" + given.part->use.id +
                           "\" is left out: " + hold->says);
      } else {
        all.push_back(def);
      }
    }
  }
  return all;
}

Result<ApplyReport> HostImpl::exchange(Profile next, std::vector<ServerDef> servers) {
  ApplyReport report;
  const std::vector<PluginUse> policies = reloadable_policies(&next);
  report.needs_restart = keep_fixed(profile_, &next);
  use_tool_files(&next, &report);
  NextTools tools;
  if (auto loaded = load_tools(next, &tools); !loaded.has_value()) {
    return std::unexpected(loaded.error());
  }
  const auto other_rules = reload_policies(policies);
  if (!other_rules.has_value()) return std::unexpected(other_rules.error());
  for (const PluginUse &use : policies) {
    std::replace_if(
        next.policies.begin(), next.policies.end(),
        [&](const PluginUse &kept) { return kept.id == use.id; }, use);
  }
  // Nothing fails from here on.
  use_policy_mark(&next, &report);
  report.settings = changed_settings(profile_, next);
  const bool other_names = !(profile_.naming == next.naming) || !(profile_.expose == next.expose);
  // What a plugin changes of the servers knows no more of their tools than this profile did.
  const bool other_pins = !(profile_.pins == next.pins) || profile_.pinned != next.pinned;
  const bool other_waits = profile_.limits.policy_timeout_ms != next.limits.policy_timeout_ms ||
                           profile_.limits.policy_waiting_bytes != next.limits.policy_waiting_bytes;
  profile_ = std::move(next);
  use_prints();
  if (!servers.empty() && !profile_.state_dir.empty()) make_log_folder();
  std::vector<NextUpstream> set;
  for (const ServerDef &def : servers) set.push_back(next_server(def, &report));
  Parts parts;
  for (NextTools::Entry &entry : tools.entries) {
    const bool fresh = entry.fresh != nullptr;
    if (!fresh) {
      const auto at = std::find_if(tools_.begin(), tools_.end(),
                                   [&](const auto &part) { return part.get() == entry.kept; });
      entry.fresh = std::move(*at);
      tools_.erase(at);
    }
    set.push_back(next_tools(*entry.fresh, fresh, &report));
    parts.push_back(std::move(entry.fresh));
  }
  for (const auto &upstream : router_->upstreams()) {
    const auto same = [&](const auto &name) { return name == upstream->name(); };
    const bool stays =
        find_server(servers, upstream->name()) != nullptr ||
        std::any_of(parts.begin(), parts.end(), [&](const auto &p) { return same(p->use.id); });
    if (!stays) report.removed.push_back(upstream->name());
  }
  Parts left = std::exchange(tools_, std::move(parts));
  servers_ = std::move(servers);
  const bool same_order =
      std::equal(set.begin(), set.end(), router_->upstreams().begin(), router_->upstreams().end(),
                 [](const NextUpstream &is, const auto &was) { return is.kept == was.get(); });
  if (!same_order || !report.nothing_changed())
    router_->reload().exchange_upstreams(std::move(set));
  if (other_names) router_->reload().profile_changed();
  if (other_pins) router_->reload().use_pins();
  if (other_waits) use_policy_limits();
  if (*other_rules) {
    policy_stack_.rules_changed();
    static_cast<void>(use_policies());  // what they need may be other now
    router_->reload().policy_changed();
  }
  if (!report.policy.empty()) record_policy(report.policy);
  for (auto &part : left) leaving_.push_back(std::move(part));
  end_left_parts();
  log(BH_LOG_INFO, "host", summary(report));
  return report;
}

// A tools plugin in this process is not replaced when only its file has changed: its code stays
// mapped.
void HostImpl::use_tool_files(Profile *next, ApplyReport *report) const {
  const auto here = [&](const PluginUse &use) { return !remote_.contains(use.id); };
  for (std::string &line : keep_files(profile_.tools, &next->tools, here)) {
    report->needs_restart.push_back(std::move(line));
  }
  report->files = changed_files(profile_.tools, next->tools);
}

// What `next` has of policies is in force now, but what the report says of them.
void HostImpl::use_policy_mark(Profile *next, ApplyReport *report) const {
  const PolicyMark &mark = profile_.policy_mark;
  const std::vector<std::string> &left = report->needs_restart;
  const bool kept = std::any_of(left.begin(), left.end(), [](const std::string &line) {
    return line.starts_with("policies");
  });
  if (next->policy_mark.generation == 0) {
    next->policy_mark = next_policy_mark(mark, profile_.policies, next->policies);
  } else if (kept) {
    next->policy_mark = mark;  // whoever made it learns of this, and makes another
  }
  report->policy_mark = next->policy_mark;
  if (next->policy_mark.generation != mark.generation) report->policy = next->policy_mark.changes;
}

Result<void> HostImpl::load_tools(const Profile &next, NextTools *out) {
  for (const PluginUse &use : next.tools) {
    NextTools::Entry &entry = out->entries.emplace_back();
    for (const auto &part : tools_) {
      const auto remote = remote_.find(use.id);
      const bool here = remote == remote_.end() && part->instance != nullptr;
      const bool there = remote != remote_.end() && part->compartment == remote->second.compartment;
      const bool runs = (here || there) && part->failure.empty();
      if (runs && same_use(part->use, use)) entry.kept = part.get();
    }
    if (entry.kept != nullptr) continue;
    auto part = make_part_or_link("tools", use);
    if (!part.has_value()) return std::unexpected(part.error());
    if (auto up = bring_up(**part); !up.has_value()) return up;
    entry.fresh = std::move(*part);
  }
  return {};
}

// Policies here that are the same but for their configuration, and take another: these are left as
// they are in *next, and what they are to be is returned. A file that has changed, or is not known,
// does not keep their rules from being in force: the code that runs takes them, and keep_fixed()
// names the file.
std::vector<PluginUse> HostImpl::reloadable_policies(Profile *next) const {
  std::vector<PluginUse> out;
  for (PluginUse &use : next->policies) {
    for (const auto &part : policies_) {
      PluginUse same = use, running = use;
      same.config_json = running.config_json = part->use.config_json;
      running.file = part->use.file;
      if (part->instance == nullptr || same == use || !same_use(part->use, running)) continue;
      const auto *table = part->instance->ext<bh_policy>(BH_EXT_POLICY);
      if (table == nullptr || !BH_HAS(bh_policy, table, reconfigure)) continue;
      if (table->reconfigure == nullptr) continue;
      out.push_back(std::exchange(use, std::move(same)));
      out.back().file = part->use.file;
    }
  }
  return out;
}

namespace {

Result<void> reconfigure(Part &part, const PluginUse &use) {
  const auto refused = [&](bh_status code, std::string_view text) {
    return fail(code, "policies." + use.id + ": " + std::string(text));
  };
  const std::string_view schema = part.instance->library().description().config_schema;
  if (auto fits = check_config(schema, use.config_json); !fits.has_value()) {
    return refused(fits.error().code, fits.error().text);
  }
  const auto *table = part.instance->ext<bh_policy>(BH_EXT_POLICY);
  bh_error error = bh::make_error();
  const bh_status status =
      table->reconfigure(part.instance->self(), bh::str(use.config_json), &error);
  if (status != BH_OK) return refused(status, bh::text(error));
  part.use = use;
  return {};
}

}  // namespace

// True: there are other rules now. When one refuses its own, all keep what they have.
Result<bool> HostImpl::reload_policies(const std::vector<PluginUse> &uses) {
  std::vector<std::pair<Part *, PluginUse>> before;
  for (const PluginUse &use : uses) {
    for (const auto &part : policies_) {
      if (part->use.id != use.id) continue;
      const PluginUse was = part->use;
      if (auto done = reconfigure(*part, use); done.has_value()) {
        before.emplace_back(part.get(), was);
        continue;
      } else {
        for (const auto &[changed, old] : before) static_cast<void>(reconfigure(*changed, old));
        return std::unexpected(done.error());
      }
    }
  }
  return !uses.empty();
}

NextUpstream HostImpl::next_server(const ServerDef &def, ApplyReport *report) {
  NextUpstream next;
  Upstream *old = nullptr;
  for (const auto &upstream : router_->upstreams()) {
    if (upstream->name() == def.name) old = upstream.get();
  }
  const ServerDef *was = find_server(servers_, def.name);
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
  next.fresh = make_upstream(def);
  next.replaces = old;
  (old == nullptr ? report->added : report->changed).push_back(def.name);
  return next;
}

NextUpstream HostImpl::next_tools(Part &part, bool fresh, ApplyReport *report) {
  NextUpstream next;
  if (!fresh) {
    next.kept = part.upstream;
    ++report->unchanged;
    return next;
  }
  for (const auto &upstream : router_->upstreams()) {
    if (upstream->name() == part.use.id) next.replaces = upstream.get();
  }
  next.fresh = make_tools_upstream(part);
  (next.replaces == nullptr ? report->added : report->changed).push_back(part.use.id);
  return next;
}

// Plugins that are no longer in the profile end once no call runs in them.
void HostImpl::end_left_parts() {
  Parts ended;
  std::erase_if(leaving_, [&](std::unique_ptr<Part> &part) {
    if (part->upstream != nullptr && router_->draining().has(part->upstream)) return false;
    part->upstream = nullptr;  // it has gone, and the plugin may still speak of its lists
    ended.push_back(std::move(part));
    return true;
  });
  if (ended.empty()) return;
  stop_parts(ended);
  // What they have posted before is run first, and reads their parts.
  ended_.push_back(std::move(ended));
  const auto forget = [](void *self) { static_cast<HostImpl *>(self)->forget_ended(); };
  if (reactor_->post(this, forget, this) != BH_OK) forget_ended();
}

void HostImpl::forget_ended() {
  for (std::unique_ptr<Part> &part : ended_.front()) {
    const bool abandoned = part->instance != nullptr && part->instance->abandoned();
    part->instance.reset();
    if (abandoned) static_cast<void>(part.release());  // its work in the pool may still speak
  }
  ended_.pop_front();
}

}  // namespace bulkhead
