// The files and folders of the gateway that it protects from servers: own_paths, which no server
// can read, and programs, which no server can change.
#pragma once

#include <string>
#include <vector>

#include "profile/profile.hpp"

namespace bulkhead {

// Return the paths of all settings, including those that a reload cannot change.
std::vector<std::string> all_own_paths(const Profile &profile);
std::vector<std::string> all_programs(const Profile &profile);

// Adds the real paths of paths that contain symbolic links. Without them, a reload would not notice
// that a link leads to a file that is not protected yet (protects_more()).
void add_targets(std::vector<std::string> *paths);

// Changes `next` for a reload: paths of settings that it cannot change stay as they are in `now`,
// and files to which links among them lead by now are added. Paths that `next` no longer names stay
// protected if they exist, because the code of a removed plugin can still be mapped from its file.
// `kept_connector`: the reload keeps the connector of a server type that `next` removes or
// replaces, so missing programs of `now` stay protected, too.
void keep_protected(const Profile &now, Profile *next, bool kept_connector);

// Returns true if `next` protects a file or folder from servers that `now` does not protect. The
// views of running servers do not hide it.
bool protects_more(const Profile &now, const Profile &next);

}  // namespace bulkhead
