// Reads, checks and writes a profile that a command edits.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "command_line/commands.hpp"
#include "profile/layer.hpp"
#include "sources/profile_source.hpp"

namespace bulkhead::program {

// Returns a copy of the arguments that selects only this profile, without a project file.
Arguments looking_at(const Arguments &arguments, const std::string &file);

// A profile's new text, in a temporary file. The file is in the same directory, so relative paths
// keep their meaning.
class DraftProfile {
 public:
  DraftProfile(const std::string &path, std::string_view text);
  ~DraftProfile();
  DraftProfile(const DraftProfile &) = delete;
  DraftProfile &operator=(const DraftProfile &) = delete;

  // Loads the draft. Error messages contain the path of the profile, not that of the temporary
  // file.
  std::expected<LoadedProfile, std::vector<std::string>> load(const Arguments &arguments) const;

 private:
  const std::string path_;
  std::string draft_;
  Result<void> written_;
};

// A profile that is being edited. While the lock is held, this user's other commands cannot edit
// the profile.
struct EditedProfile {
  OwnedFd lock;
  ProfileLayer layer;
  bool is_new = false;
};
// Opens a profile for editing, and waits up to five seconds for the lock. If the file does not
// exist, the profile is new and empty.
Result<EditedProfile> open_profile(const std::string &path);

// Returns the default address and the addresses on which the profile's transports listen. `path`
// may be empty or name a file that does not exist. A server at one of these addresses is this
// gateway itself.
std::vector<std::string> own_addresses(const Arguments &arguments, const std::string &path);

// Both functions print why the profile was not changed, and return exit_failed.
int profile_unchanged(const std::string &path, const std::vector<std::string> &lines);
int profile_unchanged(const std::string &path, const Error &error);
// If a gateway with this profile is running, prints how to apply the change.
void mention_reload(const std::string &path);

}  // namespace bulkhead::program
