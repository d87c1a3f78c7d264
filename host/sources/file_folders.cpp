#include "sources/file_folders.hpp"

#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bulkhead/cpp/json_writer.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "sandbox/grant_record.hpp"
#include "sandbox/homes.hpp"
#include "sandbox/named_folder.hpp"
#include "sandbox/path_walk.hpp"

namespace bulkhead::program {
namespace {

bool is_builtin_files(const PluginUse &use) {
  return std::filesystem::path(use.plugin).stem() == "builtin-files";
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
    const std::string full = std::filesystem::absolute(path, error).string();
    if (path.empty() || !full.starts_with('/') || walk_path(full).links.empty()) return path;
    if (!request_) request_ = view_request(profile_);
    NamedFolder found = resolve_named_folder(full, *request_);
    if (found.problem.empty()) return std::move(found.path);
    if (problem_.empty()) problem_ = std::move(found.problem);
    return path;
  }

  const Profile &profile_;
  std::optional<ViewRequest> request_;
  std::string problem_;
};

}  // namespace

ViewRequest view_request(const Profile &profile) {
  ViewRequest request;
  request.user = ::geteuid();
  request.own = profile.own_paths;
  request.programs = profile.programs;
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
