#include "sources/file_folders.hpp"

#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bulkhead/cpp/json_writer.hpp"
#include "common/paths.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "profile/protected_paths.hpp"
#include "sandbox/grant_record.hpp"
#include "sandbox/homes.hpp"
#include "sandbox/named_folder.hpp"
#include "sandbox/path_walk.hpp"
#include "sandbox/paths.hpp"

namespace bulkhead::program {
namespace {

bool is_builtin_files(const PluginUse &use) {
  return std::filesystem::path(use.plugin).stem() == "builtin-files";
}

// Returns the folders that the profile's servers will be able to change. The GrantRecord contains
// the folders of a server only after its first start.
std::vector<std::string> granted_folders(const Profile &profile) {
  std::vector<std::string> out;
  for (const ServerDef &server : profile.servers) {
    if (server.disabled || server.command.empty()) continue;
    const auto policy = parse_child_policy(server.name, server.to_json());
    if (!policy) continue;  // the server is not started
    for (const ViewStep &step : plan_view(view_request(profile, &*policy)).steps) {
      if (step.kind == ViewStep::Kind::bind && step.writable && !step.instead && step.folder) {
        out.push_back(step.path);
      }
    }
  }
  return out;
}

class Resolver {
 public:
  explicit Resolver(const Profile &profile) : profile_(profile) {}

  std::string config(std::string_view json) {
    std::string out = object(json);
    out.pop_back();
    return out + (out == "{" ? "" : ",") + "\"resolved\":true}";
  }
  const std::string &problem() const noexcept { return problem_; }

 private:
  // Copies an object and resolves the paths in it.
  std::string object(std::string_view json) {
    std::string out;
    mcp::for_each_member(json, [&](std::string_view key, std::string_view value) {
      if (key == "\"resolved\"") return;
      out.append(out.empty() ? "{" : ",").append(key).append(":");
      if (key == "\"path\"" && value.starts_with('"')) {
        std::string scratch;
        out += bh::json::quoted(folder(std::string(mcp::unquote(value, &scratch))));
      } else if (key == "\"workspaces\"" && value.starts_with('[')) {
        out += array(value);
      } else if (key == "\"snapshots\"" && value.starts_with('{')) {
        out += object(value);
      } else {
        out += value;
      }
    });
    return out.empty() ? "{}" : out + "}";
  }

  std::string array(std::string_view json) {
    std::string out;
    mcp::for_each_item(json, [&](std::string_view item) {
      out.append(out.empty() ? "[" : ",");
      out += item.starts_with('{') ? object(item) : std::string(item);
    });
    return out.empty() ? "[]" : out + "]";
  }

  // Returns the path unchanged if it contains no links.
  std::string folder(const std::string &path) {
    std::error_code error;
    std::string full = std::filesystem::absolute(path, error).string();
    if (path.empty() || !full.starts_with('/') || walk_path(full).links.empty()) return path;
    // No server can change the links that lead to the gateway's own home directory.
    if (const std::string home = home_dir(); is_within(full, home)) {
      full = resolved_path(home) + full.substr(home.size());
      if (walk_path(full).links.empty()) return full;
    }
    ChildPolicy policy;
    policy.write = {full};
    ViewRequest request = view_request(profile_, &policy);
    if (!granted_) granted_ = granted_folders(profile_);
    request.changeable.insert(request.changeable.end(), granted_->begin(), granted_->end());
    NamedFolder found = resolve_named_folder(full, request);
    if (found.problem.empty()) return std::move(found.path);
    if (problem_.empty()) problem_ = std::move(found.problem);
    return path;
  }

  const Profile &profile_;
  std::optional<std::vector<std::string>> granted_;  // empty: not determined yet
  std::string problem_;
};

}  // namespace

ViewRequest view_request(const Profile &profile, const ChildPolicy *policy) {
  ViewRequest request;
  request.policy = policy;
  request.user = ::geteuid();
  request.own = all_own_paths(profile);
  if (!profile.state_dir.empty()) request.own.push_back(profile.state_dir);
  request.programs = all_programs(profile);
  find_homes(&request);
  GrantRecord(GrantRecord::file_in(profile.state_dir)).add_to(&request);
  request.changeable.insert(request.changeable.end(), std::begin(shared_folders),
                            std::end(shared_folders));
  return request;
}

void resolve_file_folders(Profile *profile) {
  std::erase_if(profile->tools, [&](PluginUse &use) {
    if (!is_builtin_files(use)) return false;
    Resolver paths(*profile);
    use.config_json = paths.config(use.config_json);
    if (paths.problem().empty()) return false;
    profile->notes.push_back("the tools \"" + use.id + "\" are disabled: " + paths.problem());
    return true;
  });
}

}  // namespace bulkhead::program
