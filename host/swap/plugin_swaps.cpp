#include "swap/plugin_swaps.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/cpp/clock.hpp"
#include "common/file_mark.hpp"
#include "corporation/holds.hpp"
#include "plugin_base/load_options.hpp"
#include "sources/judge_places.hpp"
#include "trust/plugin_log.hpp"

namespace bulkhead::program {
namespace {

// The plugins of a profile that can be swapped: an instance is found by its ID or, if a tools
// plugins of different kinds have the same ID, by its group and its ID ("policies.mine").
struct Place {
  std::string_view group;  // "tools", "policies" or "telemetry"
  const PluginUse *use;
  std::string name() const { return std::string(group) + "." + use->id; }
};

std::vector<Place> places(const Profile &profile) {
  std::vector<Place> out;
  for (const PluginUse &use : profile.tools) out.push_back({"tools", &use});
  for (const PluginUse &use : profile.policies) {
    if (!runs_in_endpoint(use)) out.push_back({"policies", &use});
  }
  for (const PluginUse &use : profile.telemetry) {
    if (!runs_in_endpoint(use)) out.push_back({"telemetry", &use});
  }
  return out;
}

// Returns the plugin with this name ("policies.mine"), or null.
const PluginUse *find_named(const Profile &profile, const std::string &name) {
  for (const Place &place : places(profile)) {
    if (place.name() == name) return place.use;
  }
  return nullptr;
}

bool has(const std::vector<PluginUse> &uses, const std::string &id) {
  return std::any_of(uses.begin(), uses.end(), [&](const PluginUse &use) { return use.id == id; });
}

// Returns why no plugin with this ID can be swapped.
std::string no_place(const Profile &profile, const std::string &id) {
  const std::pair<std::string_view, const std::vector<PluginUse> *> inside[] = {
      {"policies", &profile.policies}, {"telemetry", &profile.telemetry}};
  for (const auto &[group, uses] : inside) {
    if (!has(*uses, id)) continue;
    return std::string(group) + "." + id +
           " runs in the endpoint, so its code cannot be replaced at run time. Set compartment = "
           "\"own\" to make this possible, or replace its file and restart the gateway";
  }
  const std::pair<std::string_view, const std::vector<PluginUse> *> others[] = {
      {"transports", &profile.transports}, {"services", &profile.services}};
  for (const auto &[group, uses] : others) {
    if (!has(*uses, id)) continue;
    return std::string(group) + "." + id +
           " cannot be swapped: only tools plugins, policies and telemetry plugins can. Change the "
           "profile, and restart the gateway";
  }
  std::string out = "the gateway has no tools, policy or telemetry plugin \"" + id + "\"", all;
  for (const Place &place : places(profile)) all += (all.empty() ? "" : ", ") + place.name();
  return out + (all.empty() ? "" : "; it has: " + all);
}

Result<Place> find_place(const Profile &profile, const std::string &id) {
  std::vector<Place> found;
  for (const Place &place : places(profile)) {
    if (place.name() == id) return place;
    if (place.use->id == id) found.push_back(place);
  }
  if (found.empty()) return fail(BH_E_NOT_FOUND, no_place(profile, id));
  if (found.size() > 1) {
    return fail(BH_E_INVALID, "both " + found[0].name() + " and " + found[1].name() +
                                  " exist: use one of these names");
  }
  return found[0];
}

// Returns the ID that the manifest of the profile's plugin has.
std::string manifest_id(const PluginUse &use) {
  std::string name = use.plugin.substr(use.plugin.rfind('/') + 1);
  if (name.ends_with(".so")) name.resize(name.size() - 3);
  return name;
}

std::string shown(const PluginVersion &version) {
  return version.version + " (sha256 " + version.file.sha256 + ")";
}

// Returns why the plugin's file is fixed, or an empty string.
std::string refusal(const Place &place, const std::vector<ProfileHold> &holds) {
  const std::string where = place.name();
  const PluginUse &use = *place.use;
  std::vector<std::string> groups{std::string(place.group)};
  // Servers and tools plugins share their names, and the organization can hold both as servers.
  if (place.group == "tools") groups.emplace_back("mcpServers");
  for (const std::string &group : groups) {
    const ProfileHold *hold = find_hold(holds, {group, use.id, "plugin"});
    if (hold != nullptr) return where + " is locked: " + hold->says;
  }
  if (const ProfileHold *hold = find_hold(holds, {"plugin_dirs"})) {
    return where + " cannot be swapped, because plugin_dirs is locked: " + hold->says;
  }
  if (use.sha256.empty()) return {};
  return "the profile pins the file of " + where +
         " with `sha256`: change it there, and run `bulkhead reload`";
}

// What a plugin of a group must provide.
struct Kind {
  std::string_view group, is_not;
  const char *extension;
};
constexpr Kind kinds[] = {{"tools", " does not offer tools (", BH_EXT_TOOLS},
                          {"policies", " is not a policy (", BH_EXT_POLICY},
                          {"telemetry", " is not a telemetry plugin (", BH_EXT_TELEMETRY}};

PluginVersion version_of(StoredPlugin stored) {
  PluginVersion out;
  out.file.path = stored.path;
  out.file.sha256 = stored.sha256;
  out.file.exclusive = stored.exclusive;
  out.file.is_program_copy = stored.is_program_copy;
  out.version = stored.version;
  out.stored = std::make_shared<const StoredPlugin>(std::move(stored));
  return out;
}

void describe(PluginChange *change) {
  change->to.file.change = std::string(change->rollback ? "rollback: " : "swap: ") +
                           shown(change->from) + " replaced by " + shown(change->to);
}

}  // namespace

struct PluginSwaps::Job {
  PluginSwaps *swaps;
  std::string group;    // of a Place
  PluginUse use;        // in the profile in use
  std::string file;     // of the new version; empty: the profile's file
  LoadOptions options;  // for the profile's file
  std::string state_dir;
  std::shared_ptr<const OpenPlugin> former;  // if the current version is not in the store yet
  std::string former_mark;
  PluginVersion from;  // otherwise
  std::string base;
  std::function<void(Result<PluginChange>)> done;
  Result<PluginChange> outcome = fail(BH_E_INTERNAL, "the job was not run");

  // Runs on a pool thread.
  void work() {
    remove_unused_plugins(state_dir);
    outcome = change();
  }
  Result<PluginChange> change();
};

Result<PluginChange> PluginSwaps::Job::change() {
  const std::string where = group + "." + use.id;
  auto opened = open_plugin(file.empty() ? use.plugin : file, options);
  if (!opened) return std::unexpected(opened.error());
  const CheckedLibrary &candidate = opened->library;
  if (candidate.manifest.id != manifest_id(use)) {
    return fail(BH_E_INVALID, candidate.path + " is the plugin \"" + candidate.manifest.id +
                                  "\", but " + where + " uses \"" + manifest_id(use) + "\"");
  }
  const auto &provides = candidate.manifest.provides;
  for (const Kind &kind : kinds) {
    if (kind.group != group) continue;
    if (std::find(provides.begin(), provides.end(), kind.extension) != provides.end()) continue;
    return fail(BH_E_INVALID,
                candidate.path + std::string(kind.is_not) + std::string(kind.extension) + ")");
  }
  PluginChange out;
  out.group = group;
  out.id = use.id;
  out.plugin = use.plugin;
  out.base = base;
  out.trust = options.trust;
  out.from = std::move(from);
  // If the profile's file itself was replaced, a reload must not replace the plugin again.
  const auto own = Library::check(use.plugin, options);
  if (own && file_mark(own->status) == file_mark(candidate.status)) {
    out.base = file_mark(candidate.status);
  }
  if (former != nullptr) {
    struct stat status{};
    // A sealed copy cannot be overwritten.
    if (!former->library.sealed &&
        (::fstat(former->library.fd(), &status) != 0 || file_mark(status) != former_mark)) {
      return fail(BH_E_INVALID,
                  former->library.path +
                      " was overwritten while it is in use, so this version could not be restored. "
                      "Rename new files over old ones (mv), and run `bulkhead reload`");
    }
    auto stored = store_plugin(state_dir, *former);
    if (!stored) return std::unexpected(stored.error());
    out.from = version_of(std::move(*stored));
  }
  auto stored = store_plugin(state_dir, *opened);
  if (!stored) return std::unexpected(stored.error());
  out.to = version_of(std::move(*stored));
  out.from.file.mark = out.to.file.mark = out.base;
  if (out.to.file.sha256 == out.from.file.sha256) {
    return fail(BH_E_INVALID, where + " already uses this file: version " + shown(out.to));
  }
  describe(&out);
  return out;
}

PluginSwaps::PluginSwaps(Reactor &reactor, std::string state_dir)
    : reactor_(reactor), state_dir_(std::move(state_dir)) {}

void PluginSwaps::remove_unused() {
  const auto started = reactor_.run_blocking(
      this, bh::blocking_work(
                this, [](PluginSwaps &self) { remove_unused_plugins(self.state_dir_); },
                [](PluginSwaps &self) { --self.running_; }));
  if (started == BH_OK) ++running_;
}

PluginSwaps::~PluginSwaps() {
  while (running_ > 0) reactor_.poll(100);
  reactor_.forget(this);
}

void PluginSwaps::hold(const Profile &profile) {
  std::erase_if(held_, [&](const auto &entry) {
    const PluginUse *use = find_named(profile, entry.first);
    return use == nullptr || use->file.mark != entry.second.mark;
  });
  for (const Place &place : places(profile)) {
    const PluginUse &use = *place.use;
    if (use.file.mark.empty() || !use.file.path.empty() || held_.contains(place.name())) continue;
    const LoadOptions options = load_options(profile);
    auto opened = open_plugin(use.plugin, options);
    // If the file was replaced after the profile was read, this is not the version in use.
    if (!opened || file_mark(opened->library.status) != use.file.mark) continue;
    held_[place.name()] = {use.file.mark, std::make_shared<const OpenPlugin>(std::move(*opened))};
  }
}

void PluginSwaps::apply_to(Profile *profile, const std::vector<ProfileHold> &holds) const {
  const auto apply = [&](std::string_view group, PluginUse *use) {
    const Place place{group, use};
    const auto at = swaps_.find(place.name());
    if (at == swaps_.end()) return;
    const Swap &swap = at->second;
    // An unreadable file has no mark.
    const bool same_file = use->file.mark.empty() || use->file.mark == swap.base;
    // If the rules for plugins changed, they may reject the copy that runs.
    const auto trusted = [&] {
      PluginUse copy = *use;
      copy.file = swap.current.file;
      return profile->plugin_trust == swap.trust ||
             Library::check(copy.file.path, load_options(*profile, copy)).has_value();
    };
    if (use->plugin == swap.plugin && same_file && refusal(place, holds).empty() && trusted()) {
      use->file = swap.current.file;
    } else if (use->file.mark.empty() && use->sha256.empty()) {
      use->file.mark = "unreadable";  // without a mark, the file in use would be kept
    }
  };
  for (PluginUse &use : profile->tools) apply("tools", &use);
  for (PluginUse &use : profile->policies) apply("policies", &use);
  for (PluginUse &use : profile->telemetry) apply("telemetry", &use);
}

void PluginSwaps::forget_unused(const Profile &in_use) {
  std::erase_if(swaps_, [&](const auto &entry) {
    const PluginUse *use = find_named(in_use, entry.first);
    return use == nullptr || use->file.path != entry.second.current.file.path;
  });
}

Result<PluginChange> PluginSwaps::rollback(const std::string &group, const PluginUse &use) const {
  const std::string where = group + "." + use.id;
  const auto at = swaps_.find(where);
  const bool possible = at != swaps_.end() && at->second.previous.stored != nullptr;
  if (!possible || reactor_.now_ns() > at->second.previous_until) {
    return fail(BH_E_NOT_FOUND, where + " has no earlier version that can be restored" +
                                    (possible ? ": it was swapped more than an hour ago" : ""));
  }
  const Swap &swap = at->second;
  PluginChange out;
  out.group = group;
  out.id = use.id;
  out.plugin = swap.plugin;
  out.base = swap.base;
  out.from = swap.current;
  out.to = swap.previous;
  out.rollback = true;
  out.to.file.mark = swap.base;
  describe(&out);
  return out;
}

std::string PluginSwaps::watch_refusals(const Profile &profile,
                                        const std::vector<ProfileHold> &holds) {
  std::string out;
  const auto check = [&](std::string_view group, const PluginUse &use) {
    if (!use.watch) return;
    const Place place{group, &use};
    std::string why = group == "policies" && runs_in_endpoint(use) ? no_place(profile, use.id)
                                                                   : refusal(place, holds);
    if (profile.plugin_trust.require_signatures) {
      why =
          "plugin_trust.require_signatures is set, and a file that a build replaces has no "
          "signature";
    }
    if (!why.empty()) out += (out.empty() ? "" : "; ") + place.name() + ".watch: " + why;
  };
  for (const PluginUse &use : profile.tools) check("tools", use);
  for (const PluginUse &use : profile.policies) check("policies", use);
  return out;
}

void PluginSwaps::prepare(const Profile &profile, const std::vector<ProfileHold> &holds,
                          const PluginSwapRequest &request,
                          std::function<void(Result<PluginChange>)> done) {
  const auto place = find_place(profile, request.id);
  if (!place) return done(std::unexpected(place.error()));
  const PluginUse *use = place->use;
  const std::string where = place->name();
  if (std::string why = refusal(*place, holds); !why.empty()) {
    return done(fail(BH_E_DENIED, std::move(why)));
  }
  if (request.rollback) return done(rollback(std::string(place->group), *use));
  auto job = std::make_unique<Job>();
  job->swaps = this;
  job->group = place->group;
  job->use = *use;
  job->file = request.file;
  job->options = load_options(profile);
  job->state_dir = state_dir_;
  job->done = std::move(done);
  if (const auto swap = swaps_.find(where); swap != swaps_.end()) {
    job->from = swap->second.current;
    job->base = swap->second.base;
  } else if (const auto held = held_.find(where); held != held_.end()) {
    job->former = held->second.plugin;
    job->former_mark = held->second.mark;
    job->base = use->file.mark;
  } else {
    return job->done(fail(BH_E_NOT_FOUND, where +
                                              " cannot be swapped at the moment: the gateway is "
                                              "starting, or the file in use was replaced. Try "
                                              "again, or run `bulkhead reload`"));
  }
  const bh_status started = reactor_.run_blocking(
      this, bh::blocking_work(
                job.get(), [](Job &it) { it.work(); }, [](Job &it) { it.swaps->prepared(it); }));
  if (started != BH_OK) return job->done(fail(BH_E_LIMIT, "the gateway is busy"));
  ++running_;
  static_cast<void>(job.release());  // prepared() deletes it
}

void PluginSwaps::prepared(Job &job) {
  const std::unique_ptr<Job> over(&job);
  --running_;
  over->done(std::move(over->outcome));
}

// Written on a pool thread, because the disk may be slow. The audit records have the change as
// well.
void PluginSwaps::log_change(const PluginChange &change) {
  struct LogJob {
    PluginSwaps *swaps;
    std::string state_dir;
    PluginEvent event;
  };
  const StoredPlugin &to = *change.to.stored;
  auto job = std::make_unique<LogJob>(
      LogJob{this,
             state_dir_,
             {bh::unix_ms(), change.rollback ? "rollback" : "swap", to.id, to.version, to.sha256,
              to.signer, change.group + "." + change.id + " replaces " + change.from.version}});
  const bh_status started = reactor_.run_blocking(
      this, bh::blocking_work(
                job.get(),
                [](LogJob &it) { static_cast<void>(PluginLog(it.state_dir).append(it.event)); },
                [](LogJob &it) {
                  const std::unique_ptr<LogJob> over(&it);
                  --over->swaps->running_;
                }));
  if (started != BH_OK) return;
  ++running_;
  static_cast<void>(job.release());
}

PluginSwapped PluginSwaps::in_use(const PluginChange &change) {
  const std::string name = change.group + "." + change.id;
  Swap &swap = swaps_[name];
  swap.plugin = change.plugin;
  swap.base = change.base;
  swap.current = change.to;
  swap.trust = change.trust;
  swap.previous = change.rollback ? PluginVersion() : change.from;
  swap.previous_until = reactor_.now_ns() + rollback_ms * 1'000'000u;
  held_.erase(name);
  log_change(change);
  PluginSwapped out;
  out.id = change.id;
  out.plugin = change.to.stored->id;
  out.from_version = change.from.version;
  out.from_sha256 = change.from.file.sha256;
  out.to_version = change.to.version;
  out.to_sha256 = change.to.file.sha256;
  if (!change.rollback) out.rollback_until_ms = bh::unix_ms() + rollback_ms;
  return out;
}

PluginFile PluginSwaps::restored(const PluginChange &change) {
  const std::string name = change.group + "." + change.id;
  Swap &swap = swaps_[name];
  swap.plugin = change.plugin;
  swap.base = change.base;
  swap.current = change.from;
  swap.current.file.change =
      "restored: " + shown(change.from) + ", because " + shown(change.to) + " could not be started";
  swap.trust = change.trust;
  swap.previous = PluginVersion();
  held_.erase(name);
  return swap.current.file;
}

}  // namespace bulkhead::program
