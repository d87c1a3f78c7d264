#include "sources/plugin_check.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "plugin/config_schema.hpp"
#include "plugin/loader.hpp"

namespace bulkhead::program {
namespace {

class PluginCheck {
 public:
  explicit PluginCheck(const Profile &profile) : profile_(profile) {}

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
      if (use.required) check(group + "." + use.id, use);
    }
  }

  void check(const std::string &path, const PluginUse &use) {
    const Result<std::string> &schema = schema_of_plugin(use);
    if (!schema) {
      if (path.starts_with("services.")) return;  // missed by whoever asks for it, if anybody does
      return add(origin_of(path + ".plugin", use), path + ".plugin", schema.error().text,
                 "plugin_unusable");
    }
    for (const ConfigFault &fault : config_faults(*schema, use.config_json)) {
      const std::string at = fault.path.empty() ? path : path + "." + fault.path;
      add(origin_of(at, use), at, fault.what, "plugin_config");
    }
  }

  // Read once for all instances of one file.
  const Result<std::string> &schema_of_plugin(const PluginUse &use) {
    const auto [at, fresh] = schemas_.try_emplace({use.plugin, use.sha256}, std::string());
    if (fresh) {
      LoadOptions options;
      options.dirs = profile_.plugin_dirs;
      options.sha256 = use.sha256;
      const auto checked = Library::check(use.plugin, options);
      at->second = checked ? schema_of(*checked) : std::unexpected(checked.error());
    }
    return at->second;
  }

  // Where the value, or the first one below it, stands; else where the instance's table does.
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
  std::map<std::pair<std::string, std::string>, Result<std::string>> schemas_;
  std::vector<ProfileError> errors_;
};

}  // namespace

std::vector<std::string> check_plugins(const Profile &profile) {
  return PluginCheck(profile).run();
}

}  // namespace bulkhead::program
