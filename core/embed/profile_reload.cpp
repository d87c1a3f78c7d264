#include "embed/profile_reload.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/cpp/json_writer.hpp"
#include "profile/difference.hpp"
#include "profile/policy_mark.hpp"
#include "profile/protected_paths.hpp"
#include "route/reload.hpp"
#include "route/upstreams.hpp"

namespace bulkhead {
namespace {

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

// The tools plugins of the next profile, in profile order. Each is either kept or new.
struct ProfileReload::NextTools {
  struct Entry {
    Part *kept = nullptr;
    std::unique_ptr<Part> fresh;
  };
  std::vector<Entry> entries;
};

Result<ApplyReport> ProfileReload::apply(Profile next, std::vector<ServerDef> servers) {
  ApplyReport report;
  const std::vector<PluginUse> policies = policies_.extract_reloadable(&next);
  Profile &profile = core_.profile;
  report.needs_restart = keep_fixed(profile, &next);
  keep_missing_folders(profile, &next);
  const bool outdated =
      plugins_.has_children() && (views_outdated_ || protects_more(profile, next));
  if (outdated) {
    report.needs_restart.emplace_back(
        "the files that are hidden from running servers: needs a restart");
  }
  use_tool_files(&next, &report);
  NextTools tools;
  if (auto loaded = load_tools(next, &tools); !loaded.has_value()) {
    return std::unexpected(loaded.error());
  }
  const auto other_rules = policies_.reconfigure(policies);
  if (!other_rules.has_value()) return std::unexpected(other_rules.error());
  for (const PluginUse &use : policies) {
    std::replace_if(
        next.policies.begin(), next.policies.end(),
        [&](const PluginUse &kept) { return kept.id == use.id; }, use);
  }
  // From here on, the reload cannot fail.
  views_outdated_ = outdated;
  use_policy_mark(&next, &report);
  report.settings = changed_settings(profile, next);
  record_files(next);
  const bool other_names = !(profile.naming == next.naming) || !(profile.expose == next.expose);
  // When a plugin changes its servers, apply() receives the current profile, so the pins cannot
  // differ.
  const bool other_pins = !(profile.pins == next.pins) || profile.pinned != next.pinned;
  const bool other_waits = profile.limits.policy_timeout_ms != next.limits.policy_timeout_ms ||
                           profile.limits.policy_waiting_bytes != next.limits.policy_waiting_bytes;
  profile = std::move(next);
  forget_missing(&profile);
  plugins_.use_prints();
  plugins_.protect_files();
  exchange_servers(std::move(servers), std::move(tools), &report);
  Reload &route = core_.route().servers.reload;
  if (other_names) route.profile_changed();
  if (other_pins) route.use_pins();
  if (other_waits) policies_.use_limits();
  if (*other_rules) policies_.rules_changed();
  if (!report.policy.empty()) policies_.record(report.policy);
  plugins_.end_left();
  core_.log(BH_LOG_INFO, "host", summary(report));
  return report;
}

void ProfileReload::exchange_servers(std::vector<ServerDef> servers, NextTools tools,
                                     ApplyReport *report) {
  if (!servers.empty() && !core_.profile.state_dir.empty()) servers_.make_log_folder();
  std::vector<NextUpstream> set;
  for (const ServerDef &def : servers) set.push_back(servers_.next(def, report));
  Parts parts;
  for (NextTools::Entry &entry : tools.entries) {
    const bool fresh = entry.fresh != nullptr;
    if (!fresh) entry.fresh = plugins_.take_tools(entry.kept);
    set.push_back(servers_.next(*entry.fresh, fresh, report));
    parts.push_back(std::move(entry.fresh));
  }
  const auto &running = core_.route().servers.list.all();
  for (const auto &upstream : running) {
    const bool stays = find_server(servers, upstream->name()) != nullptr ||
                       std::any_of(parts.begin(), parts.end(), [&](const auto &part) {
                         return part->use.id == upstream->name();
                       });
    if (!stays) report->removed.push_back(upstream->name());
  }
  plugins_.exchange_tools(std::move(parts));
  servers_.set_running(std::move(servers));
  const bool same_order =
      std::equal(set.begin(), set.end(), running.begin(), running.end(),
                 [](const NextUpstream &is, const auto &was) { return is.kept == was.get(); });
  if (!same_order || !report->nothing_changed()) {
    core_.route().servers.reload.exchange_upstreams(std::move(set));
  }
}

// A tools plugin that runs in this process keeps using its current file until a restart, because
// loaded code stays mapped.
void ProfileReload::use_tool_files(Profile *next, ApplyReport *report) const {
  const auto here = [&](const PluginUse &use) { return remote_.find("tools", use.id) == nullptr; };
  for (std::string &line : keep_files(core_.profile.tools, &next->tools, here)) {
    report->needs_restart.push_back(std::move(line));
  }
  report->files = changed_files("tools", core_.profile.tools, next->tools);
  const auto add = [&](std::vector<std::string> lines) {
    for (std::string &line : lines) report->files.push_back(std::move(line));
  };
  add(changed_files("policies", core_.profile.policies, next->policies));
  add(changed_files("telemetry", core_.profile.telemetry, next->telemetry));
}

// Records which plugins get another file.
void ProfileReload::record_files(const Profile &next) const {
  const auto record = [&](std::string_view group, const std::vector<PluginUse> &was,
                          const std::vector<PluginUse> &is) {
    for (const PluginUse *use : with_changed_files(was, is)) {
      std::string detail = "{";
      bh::json::append_member(&detail, "plugin", std::string(group) + use->id);
      bh::json::append_member(&detail, "change",
                              use->file.change.empty() ? "file changed" : use->file.change);
      core_.route().records.recorder.gateway_event(BH_RECORD_PLUGIN, detail + '}');
    }
  };
  record("tools.", core_.profile.tools, next.tools);
  record("policies.", core_.profile.policies, next.policies);
  record("telemetry.", core_.profile.telemetry, next.telemetry);
}

// Sets the policy mark of `next`. If the report says that a policy change needs a restart, the mark
// does not cover that change.
void ProfileReload::use_policy_mark(Profile *next, ApplyReport *report) const {
  const PolicyMark &mark = core_.profile.policy_mark;
  const std::vector<std::string> &left = report->needs_restart;
  const bool kept = std::any_of(left.begin(), left.end(), [](const std::string &line) {
    return line.starts_with("policies");
  });
  if (next->policy_mark.generation == 0) {
    next->policy_mark = next_policy_mark(mark, core_.profile.policies, next->policies);
  } else if (kept) {
    next->policy_mark = mark;  // the caller reads the report and recomputes the mark
  }
  report->policy_mark = next->policy_mark;
  if (next->policy_mark.generation != mark.generation) report->policy = next->policy_mark.changes;
}

Result<void> ProfileReload::load_tools(const Profile &next, NextTools *out) {
  for (const PluginUse &use : next.tools) {
    NextTools::Entry &entry = out->entries.emplace_back();
    const RemoteUse *remote = remote_.find("tools", use.id);
    for (const auto &part : plugins_.tools()) {
      const bool here = remote == nullptr && part->instance != nullptr;
      const bool there = remote != nullptr && part->compartment == remote->compartment;
      const bool runs = (here || there) && part->failure.empty();
      if (runs && same_use(part->use, use)) entry.kept = part.get();
    }
    if (entry.kept != nullptr) continue;
    auto part = plugins_.make("tools", use);
    if (!part.has_value()) return std::unexpected(part.error());
    if (auto up = plugins_.start(**part); !up.has_value()) return up;
    entry.fresh = std::move(*part);
  }
  return {};
}

}  // namespace bulkhead
