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

// Adds the real path of each path that contains symbolic links, even if the file is missing.
// Without the real paths, a reload would not notice that a link leads to a file that is not
// protected yet (protects_more()).
void add_targets(std::vector<std::string> *paths);

// Sets Profile::protected_folders for the views of servers that start now: the symbolic links that
// lead to protected paths, the folders that contain these links and paths, and all folders above.
// Folders in another folder of own_paths are left out, because views hide them.
void note_protected_folders(Profile *profile);

// Changes `next` for a reload: paths of settings that a reload cannot change stay as they are in
// `now`, and the current targets of links among them are added. Paths that `next` no longer names
// stay protected, because the reload may fail; see forget_missing(). `kept_connector` is true if
// the reload keeps the connector of a server type that `next` removes or replaces: its files stay
// protected.
void keep_protected(const Profile &now, Profile *next, bool kept_connector);

// Adds to `next` those protected folders of `now` that it lacks, because running views do not
// protect a folder that has been removed and is created again later.
void keep_missing_folders(const Profile &now, Profile *next);

// Called when a reload has succeeded. Of the paths that only the former profile named, those that
// exist stay protected, because the code of a removed plugin can still be mapped from its file.
// Returns true if paths were removed.
bool forget_missing(Profile *profile);

// Adds the paths of another profile, which keep_protected() has changed, to those of `profile`.
// Used if that profile was rejected after its plugins were started, because they may still run.
void protect_also(const Profile &other, Profile *profile);

// Returns true if `next` protects a file or folder from servers that the views of running servers
// do not protect: `now` does not name it, its folder or one above it was replaced, or a new
// symbolic link leads to it. `now` must contain the protected folders of the time when the views
// were made.
bool protects_more(const Profile &now, const Profile &next);

}  // namespace bulkhead
