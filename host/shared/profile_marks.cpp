#include "shared/profile_marks.hpp"

#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "profile/archive.hpp"
#include "profile/layer.hpp"
#include "sandbox/start_folder.hpp"

namespace bulkhead::program {
namespace {

// Variables that are compared because they are passed to servers or select a proxy. PATH and LANG
// are not compared, because they differ between a terminal and a desktop session of the same user.
// Instead of PATH, the files to which commands resolve are compared. Servers keep the language of
// the gateway that started them.
constexpr const char *compared_variables[] = {
    "HOME",           "LOGNAME",    "USER",       "SSL_CERT_FILE", "SSL_CERT_DIR",
    "CURL_CA_BUNDLE", "http_proxy", "HTTP_PROXY", "https_proxy",   "HTTPS_PROXY",
    "all_proxy",      "ALL_PROXY",  "no_proxy",   "NO_PROXY"};
constexpr std::string_view variable_part = "environment variable ";
constexpr std::string_view server_prefix = "server ", program_prefix = "program of server ";

bool is_unapproved(const ServerDef &def) {
  return def.disabled && def.disabled_reason.starts_with(kNotApproved);
}

bool uses_path(const ServerDef &def) {
  return !def.disabled && !def.command.empty() && def.command.find('/') == std::string::npos;
}

std::string variable(const char *name) {
  const char *value = std::getenv(name);
  // Distinguishes an empty variable from an unset one.
  return value == nullptr ? std::string() : "=" + std::string(value);
}

// Returns the file to which a command resolves in PATH, or an empty string if there is none.
std::string found_in_path(const std::string &command) {
  const char *path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    const std::string file = std::string(folder) + "/" + command;
    struct stat about{};
    if (!folder.empty() && ::stat(file.c_str(), &about) == 0 && S_ISREG(about.st_mode) &&
        ::access(file.c_str(), X_OK) == 0) {
      return file;
    }
  }
  return {};
}

bool needs_folder(const ServerDef &def) {
  return !def.disabled && !def.command.empty() && !def.cwd.starts_with('/') &&
         !starts_in_private_folder(def.command, def.args, def.cwd);
}

// Searches a configuration for paths. `relative` is set if a member whose name refers to a path
// ("path", "snapshot_dir") has a relative value, or if any string begins with a dot.
struct FolderSearch {
  bool any_path = false, relative = false;

  void look(std::string_view name, std::string_view value) {
    if (value.starts_with('{')) {
      mcp::for_each_member(value, [this](std::string_view n, std::string_view v) { look(n, v); });
    } else if (value.starts_with('[')) {
      mcp::for_each_item(value, [this, name](std::string_view item) { look(name, item); });
    } else if (value.starts_with('"')) {
      const bool absolute = value.starts_with("\"/") || value.starts_with("\"~");
      any_path = any_path || absolute;
      relative = relative || value.starts_with("\".") || (names_path(name) && !absolute);
    }
  }
  // `name` includes the quotes.
  static bool names_path(std::string_view name) {
    for (const std::string_view end : {"path\"", "paths\"", "file\"", "dir\"", "folder\""}) {
      if (name.ends_with(end)) return true;
    }
    return false;
  }
};

// Returns true if the plugin depends on the working directory. builtin-files serves the working
// directory if no path is configured.
bool needs_folder(const PluginUse &use) {
  FolderSearch search;
  search.look({}, use.config_json);
  return search.relative || (use.plugin == "builtin-files" && !search.any_path);
}

class Marker {
 public:
  explicit Marker(std::string_view key) : key_(key) {}

  void add(const std::string &part, std::string_view bytes) {
    unsigned char hash[16];
    crypto_generichash(hash, sizeof hash, reinterpret_cast<const unsigned char *>(bytes.data()),
                       bytes.size(), reinterpret_cast<const unsigned char *>(key_.data()),
                       key_.size());
    char hex[2 * sizeof hash + 1];
    sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
    marks_[part] = hex;
  }
  template <class T>
  void add_value(const std::string &part, const T &value) {
    add(part, to_bytes(value));
  }
  void add_uses(const std::string &kind, const std::vector<PluginUse> &uses) {
    std::string order;
    for (PluginUse use : uses) {
      use.origin = {};
      // A swap does not separate the programs of a user.
      use.file.path.clear();
      use.file.sha256.clear();
      use.file.change.clear();
      order += use.id + " ";
      add_value(kind + " " + use.id, use);
    }
    if (uses.size() > 1) add("order of " + kind + " plugins", order);
  }
  ProfileMarks take() { return std::move(marks_); }

 private:
  const std::string key_;
  ProfileMarks marks_;
};

}  // namespace

std::string server_part(std::string_view server) {
  return std::string(server_prefix).append(server);
}

std::string program_part(std::string_view server) {
  return std::string(program_prefix).append(server);
}

std::string selected_program(const ServerDef &def) {
  return uses_path(def) ? found_in_path(def.command) : def.command;
}

std::vector<std::string> unapproved_servers(const Profile &profile) {
  std::vector<std::string> out;
  for (const ServerDef &def : profile.servers) {
    if (is_unapproved(def)) out.push_back(def.name);
  }
  return out;
}

std::vector<std::string> servers_in_folder(const Profile &profile) {
  std::vector<std::string> out;
  for (const ServerDef &def : profile.servers) {
    if (needs_folder(def)) out.push_back(def.name);
  }
  return out;
}

ProfileMarks marks_of(const Profile &profile, std::string_view folder, std::string_view key) {
  Marker marker(key);
  bool folder_matters = !servers_in_folder(profile).empty();
  for (ServerDef def : profile.servers) {
    if (is_unapproved(def)) continue;
    if (uses_path(def)) marker.add(program_part(def.name), found_in_path(def.command));
    def.origin = {};
    def.kept = {};
    def.restarts = 0;
    marker.add(server_part(def.name), to_bytes(def));
  }
  for (const auto *uses :
       {&profile.tools, &profile.policies, &profile.telemetry, &profile.services}) {
    for (const PluginUse &use : *uses) folder_matters = folder_matters || needs_folder(use);
  }
  marker.add_uses("tools", profile.tools);
  marker.add_uses("policy", profile.policies);
  marker.add_uses("telemetry", profile.telemetry);
  marker.add_uses("service", profile.services);
  marker.add_value("connectors", std::pair(profile.connectors, profile.connector_files));
  marker.add_value("plugin_dirs", profile.plugin_dirs);
  PluginTrust trust = profile.plugin_trust;
  trust.quarantined.clear();  // changes while a gateway runs
  marker.add_value("plugin_trust", trust);
  marker.add_value("naming", profile.naming);
  marker.add_value("expose", profile.expose);
  Limits limits = profile.limits;
  limits.first_list_wait_ms = 0;
  marker.add_value("limits", limits);
  marker.add_value("isolation", profile.isolation);
  marker.add_value("approval", profile.approval);
  marker.add_value("pins", profile.pins);
  std::vector<std::pair<std::vector<std::string>, bool>> holds;
  for (const ProfileHold &hold : profile.server_holds) holds.emplace_back(hold.path, hold.forbids);
  marker.add_value("locked settings", holds);
  marker.add("gateway", BULKHEAD_VERSION "\n" + profile.server_name + "\n" +
                            std::string(to_string(profile.unknown_params)) + "\n" +
                            profile.state_dir);
  for (const char *name : compared_variables) {
    marker.add(std::string(variable_part) + name, variable(name));
  }
  if (folder_matters) marker.add(std::string(folder_part), folder);
  return marker.take();
}

std::vector<std::string> different_parts(const ProfileMarks &a, const ProfileMarks &b) {
  std::vector<std::string> out;
  for (const auto &[part, mark] : a) {
    const auto at = b.find(part);
    if (at == b.end() || at->second != mark) out.push_back(part);
  }
  for (const auto &[part, mark] : b) {
    if (!a.contains(part)) out.push_back(part);
  }
  const auto mark = [](const ProfileMarks &marks, const std::string &part) {
    const auto at = marks.find(part);
    return at == marks.end() ? std::string() : at->second;
  };
  std::erase_if(out, [&](const std::string &part) {
    if (!part.starts_with(program_prefix) || (a.contains(part) && b.contains(part))) return false;
    const std::string server = server_part(std::string_view(part).substr(program_prefix.size()));
    return mark(a, server) != mark(b, server);
  });
  return out;
}

bool any_in_files(const std::vector<std::string> &parts) {
  return std::any_of(parts.begin(), parts.end(), [](const std::string &part) {
    return part != folder_part && !part.starts_with(variable_part) &&
           !part.starts_with(program_prefix);
  });
}

std::string describe_parts(const std::vector<std::string> &parts) {
  constexpr std::size_t most = max_named_parts;
  std::string out;
  for (std::size_t i = 0; i < std::min(parts.size(), most); ++i) {
    out += (i == 0 ? "" : ", ") + parts[i];
  }
  if (parts.size() > most) out += " and " + std::to_string(parts.size() - most) + " more";
  return out;
}

}  // namespace bulkhead::program
