#include "sandbox/services.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "sandbox/hidden_places.hpp"

namespace bulkhead {
namespace {

// The runtime folders of users, and the sockets of systemd.
constexpr std::string_view reserved_folders[] = {"/run/user", "/run/systemd"};

std::string_view variable(const char *name) {
  const char *value = std::getenv(name);
  return value == nullptr ? std::string_view() : value;
}

void add_path(std::string_view path, std::vector<std::string> *out) {
  if (path.starts_with('/') && path != "/") out->push_back(normal_path(std::string(path)));
}

// Adds the paths of a D-Bus address, such as "unix:path=/run/user/1000/bus,guid=12;unix:...".
void add_bus_paths(std::string_view address, std::vector<std::string> *out) {
  constexpr std::string_view key = "path=";
  while (!address.empty()) {
    std::string_view part = address.substr(0, address.find_first_of(";,"));
    address.remove_prefix(std::min(part.size() + 1, address.size()));
    if (part.starts_with("unix:")) part.remove_prefix(5);
    if (part.starts_with(key)) add_path(part.substr(key.size()), out);
  }
}

// Returns true for `nix run` and similar commands, which need the daemon to start the server's
// program.
bool is_package_client(const ChildPolicy &policy) {
  const std::string_view tool = base_of(policy.command);
  const bool found = tool == "nix" || tool.starts_with("nix-") || tool == "guix";
  return found && policy.mode != ChildPolicy::Mode::strict;
}

bool overlaps(std::string_view one, std::string_view other) {
  return is_within(one, other) || is_within(other, one);
}

}  // namespace

bool is_container_client(const ChildPolicy &policy) {
  const std::string_view tool = base_of(policy.command);
  return tool == "docker" || tool == "podman" || tool == "nerdctl";
}

void find_services(ViewRequest *request) {
  add_path(variable("SSH_AUTH_SOCK"), &request->services);
  add_path(variable("XDG_RUNTIME_DIR"), &request->services);
  add_bus_paths(variable("DBUS_SESSION_BUS_ADDRESS"), &request->services);
  for (const char *name : {"CONTAINER_HOST", "DOCKER_HOST"}) {
    constexpr std::string_view scheme = "unix://";
    const std::string_view host = variable(name);
    if (host.starts_with(scheme)) add_path(host.substr(scheme.size()), &request->engines);
  }
}

std::vector<std::string> services_hidden_from(const ChildPolicy &policy,
                                              const ViewRequest &request) {
  std::vector<std::string> out(hidden_services().begin(), hidden_services().end());
  out.push_back("/run/user/" + std::to_string(request.user));
  out.insert(out.end(), request.services.begin(), request.services.end());
  if (!is_package_client(policy)) {
    out.insert(out.end(), package_services().begin(), package_services().end());
  }
  if (is_container_client(policy)) return out;
  out.insert(out.end(), container_services().begin(), container_services().end());
  out.insert(out.end(), request.engines.begin(), request.engines.end());
  return out;
}

std::vector<std::string> services_visible_to(const ChildPolicy &policy,
                                             const ViewRequest &request) {
  std::vector<std::string> out(visible_in_run().begin(), visible_in_run().end());
  if (policy.network) {
    out.insert(out.end(), name_services_in_run().begin(), name_services_in_run().end());
  }
  if (!is_container_client(policy)) return out;
  out.insert(out.end(), container_services().begin(), container_services().end());
  out.insert(out.end(), request.engines.begin(), request.engines.end());
  return out;
}

bool may_name_in_run(const std::string &folder) {
  if (!folder.starts_with("/run/")) return false;
  for (const auto places : {std::span<const std::string_view>(reserved_folders), hidden_services(),
                            container_services()}) {
    if (std::any_of(places.begin(), places.end(),
                    [&](std::string_view place) { return overlaps(folder, place); })) {
      return false;
    }
  }
  return true;
}

std::vector<ViewStep> links_in(const std::string &folder) {
  std::vector<ViewStep> out;
  std::error_code error;
  // Not a range-for, which throws if an entry cannot be read.
  for (auto at = std::filesystem::directory_iterator(folder, error);
       !error && at != std::filesystem::directory_iterator(); at.increment(error)) {
    const auto &entry = *at;
    std::error_code gone;
    if (!entry.is_symlink(gone)) continue;
    ViewStep &step = out.emplace_back();
    step.kind = ViewStep::Kind::link;
    step.path = entry.path().string();
    step.source = std::filesystem::read_symlink(entry.path(), gone).string();
    step.folder = false;
    if (gone) out.pop_back();
  }
  return out;
}

}  // namespace bulkhead
