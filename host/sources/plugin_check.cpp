#include "sources/plugin_check.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "bulkhead/abi/ext/policy.h"
#include "bulkhead/abi/ext/telemetry.h"
#include "bulkhead/abi/ext/tools.h"
#include "bulkhead/abi/ext/transport.h"
#include "common/file_mark.hpp"
#include "plugin/config_schema.hpp"
#include "plugin/loader.hpp"
#include "plugin_base/load_options.hpp"

namespace bulkhead::program {
namespace {

// The extension that plugins in a group of the profile must provide.
struct Kind {
  std::string_view group, extension, is, offers;
};
constexpr Kind kinds[] = {
    {"transports", BH_EXT_TRANSPORT, "a transport plugin", "a transport"},
    {"tools", BH_EXT_TOOLS, "a tools plugin", "tools"},
    {"policies", BH_EXT_POLICY, "a policy plugin", "a policy"},
    {"telemetry", BH_EXT_TELEMETRY, "a telemetry plugin", "telemetry"},
};

bool provides(const std::vector<std::string> &provided, std::string_view extension) {
  return std::find(provided.begin(), provided.end(), extension) != provided.end();
}

// Checks whether a plugin that provides these extensions can be used in the group. Returns the
// reason if it cannot, or an empty string if it can.
std::string wrong_kind(std::string_view group, const PluginUse &use,
                       const std::vector<std::string> &provided) {
  const auto wanted = std::find_if(std::begin(kinds), std::end(kinds),
                                   [&](const Kind &kind) { return kind.group == group; });
  if (wanted == std::end(kinds) || provides(provided, wanted->extension)) return {};
  const std::string plugin = '"' + use.plugin + '"';
  for (const Kind &kind : kinds) {
    if (!provides(provided, kind.extension)) continue;
    return plugin + " is " + std::string(kind.is) + " (" + std::string(kind.extension) +
           ") and does not offer " + std::string(wanted->offers) + ": configure it as [" +
           std::string(kind.group) + "." + use.id + "]";
  }
  std::string all;
  for (const std::string &id : provided) all += (all.empty() ? "" : ", ") + id;
  return plugin + " does not offer " + std::string(wanted->offers) + " (" +
         std::string(wanted->extension) + "); it provides " + (all.empty() ? "nothing" : all);
}

}  // namespace

namespace {

class PluginCheck {
 public:
  explicit PluginCheck(const Profile &profile) : profile_(profile) {}

  PluginFile file_of(const PluginUse &use) {
    const Result<Facts> &facts = facts_of_plugin(use);
    if (facts) return facts->file;
    // If a file cannot be read, its plugin keeps running. If the profile rejects it, its plugin
    // must not; a mark that differs from all others makes it a changed file.
    PluginFile out;
    if (facts.error().code == BH_E_DENIED) out.mark = "rejected";
    return out;
  }

  std::vector<std::string> run() {
    check("transports", profile_.transports);
    check("tools", profile_.tools);
    check("policies", profile_.policies);
    check("telemetry", profile_.telemetry);
    check("services", profile_.services);
    std::sort(errors_.begin(), errors_.end(), [](const ProfileError &a, const ProfileError &b) {
      return std::tie(a.file, a.line, a.path, a.what) < std::tie(b.file, b.line, b.path, b.what);
    });
    std::vector<std::string> lines;
    for (const ProfileError &error : errors_) {
      std::string text = to_string(error);
      if (std::find(lines.begin(), lines.end(), text) == lines.end())
        lines.push_back(std::move(text));
    }
    return lines;
  }

 private:
  void check(const std::string &group, const std::vector<PluginUse> &uses) {
    for (const PluginUse &use : uses) {
      if (use.required) check(group, group + "." + use.id, use);
    }
  }

  void check(std::string_view group, const std::string &path, const PluginUse &use) {
    const Result<Facts> &facts = facts_of_plugin(use);
    const auto unusable = [&](std::string why) {
      add(origin_of(path + ".plugin", use), path + ".plugin", std::move(why), "plugin_unusable");
    };
    if (!facts) {
      if (group == "services") return;  // the plugin that uses the service reports the error
      return unusable(facts.error().text);
    }
    if (std::string why = wrong_kind(group, use, facts->provides); !why.empty()) {
      return unusable(std::move(why));
    }
    for (const ConfigFault &fault : config_faults(facts->schema, use.config_json)) {
      const std::string at = fault.path.empty() ? path : path + "." + fault.path;
      add(origin_of(at, use), at, fault.what, "plugin_config");
    }
  }

  struct Facts {
    std::string schema;
    std::vector<std::string> provides;
    PluginFile file;
  };

  // Reads each plugin file only once, even if the profile contains several instances of the plugin.
  const Result<Facts> &facts_of_plugin(const PluginUse &use) {
    const auto [at, fresh] = facts_.try_emplace({use.plugin, use.sha256}, Facts{});
    if (fresh) at->second = read_facts(use);
    return at->second;
  }

  Result<Facts> read_facts(const PluginUse &use) const {
    LoadOptions options = load_options(profile_);
    options.sha256 = use.sha256;
    const auto checked = Library::check(use.plugin, options);
    if (!checked) return std::unexpected(checked.error());
    auto schema = schema_of(*checked);
    if (!schema) return std::unexpected(schema.error());
    // If a digest is configured for the plugin, the plugin is identified by that digest instead of
    // its file status.
    return Facts{std::move(*schema), checked->manifest.provides,
                 PluginFile{use.sha256.empty() ? file_mark(checked->status) : "",
                            checked->manifest.exclusive}};
  }

  // Returns the origin of the value at `path` or, if there is none, of the first value below
  // `path`. If there is no such value either, returns the origin of the plugin's table.
  Origin origin_of(const std::string &path, const PluginUse &use) const {
    for (const Profile::Shown &shown : profile_.shown) {
      if (!shown.path.starts_with(path)) continue;
      const char next = shown.path.size() == path.size() ? '.' : shown.path[path.size()];
      if (next == '.' || next == '[') return shown.origin;
    }
    return use.origin;
  }

  void add(const Origin &origin, std::string path, std::string what, std::string code) {
    ProfileError error;
    error.file = origin.file.empty() ? origin.layer : origin.file;
    error.line = origin.line;
    error.path = std::move(path);
    error.what = std::move(what);
    error.code = std::move(code);
    errors_.push_back(std::move(error));
  }

  const Profile &profile_;
  std::map<std::pair<std::string, std::string>, Result<Facts>> facts_;
  std::vector<ProfileError> errors_;
};

}  // namespace

std::vector<std::string> check_plugins(Profile *profile) {
  PluginCheck check(*profile);
  for (auto *uses : {&profile->transports, &profile->tools, &profile->policies, &profile->telemetry,
                     &profile->services}) {
    for (PluginUse &use : *uses) use.file = check.file_of(use);
  }
  for (const auto &[type, plugin] : profile->connectors) {
    PluginUse use;
    use.plugin = plugin;
    profile->connector_files[type] = check.file_of(use);
  }
  return check.run();
}

std::vector<FoundPlugin> find_plugins(const Profile &profile) {
  std::vector<FoundPlugin> out = list_plugins(profile.plugin_dirs);
  const auto add = [&](const std::string &plugin, const std::string &sha256) {
    if (plugin.find('/') == std::string::npos) return;
    for (const FoundPlugin &found : out)
      if (found.path == plugin) return;
    out.push_back(describe_plugin(plugin));
    if (!out.back().error.empty()) return;
    LoadOptions options = load_options(profile);
    options.sha256 = sha256;
    const auto checked = Library::check(plugin, options);
    if (!checked) out.back().error = checked.error().text;
  };
  for (const auto *uses : {&profile.transports, &profile.tools, &profile.policies,
                           &profile.telemetry, &profile.services}) {
    for (const PluginUse &use : *uses) add(use.plugin, use.sha256);
  }
  for (const auto &[type, plugin] : profile.connectors) add(plugin, "");
  return out;
}

}  // namespace bulkhead::program
