// Determines which services of the host a server's sandbox hides and shows: the sockets of daemons
// in /run, of container engines, and those that the gateway's environment names. The host's daemons
// act outside the sandbox, some with network access, so a socket is visible only if it is listed or
// named. All functions are thread-safe unless another thread changes the environment.
#pragma once

#include <string>
#include <vector>

#include "sandbox/child_view.hpp"

namespace bulkhead {

// Returns true if the server's command is a client of a container engine.
bool is_container_client(const ChildPolicy &policy);

// Adds the paths in SSH_AUTH_SOCK, DBUS_SESSION_BUS_ADDRESS and XDG_RUNTIME_DIR to the request's
// `services`, and those in DOCKER_HOST and CONTAINER_HOST to its `engines`. Relative paths and
// other kinds of addresses are ignored.
void find_services(ViewRequest *request);

// Returns the absolute paths that are hidden from the server. They need not exist.
std::vector<std::string> services_hidden_from(const ChildPolicy &policy,
                                              const ViewRequest &request);

// Returns the paths that the server can read even if their folder is hidden. They need not exist.
std::vector<std::string> services_visible_to(const ChildPolicy &policy, const ViewRequest &request);

// Returns true if a folder is in /run and a server may be given read access to it by naming it,
// that is, if it neither contains nor is in a hidden service, a container engine's socket folder,
// /run/user or /run/systemd.
bool may_name_in_run(const std::string &folder);

// Returns a step of kind `link` for each symbolic link in the folder.
std::vector<ViewStep> links_in(const std::string &folder);

}  // namespace bulkhead
