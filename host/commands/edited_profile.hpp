// A profile that a command edits: read under a lock, loaded as a draft, then written.
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

// Returns the arguments with this profile and without a project file.
Arguments looking_at(const Arguments &arguments, const std::string &file);

// The new text of a profile, in a temporary file beside it, so that it is loaded like the profile.
class DraftProfile {
 public:
  DraftProfile(const std::string &path, std::string_view text);
  ~DraftProfile();
  DraftProfile(const DraftProfile &) = delete;
  DraftProfile &operator=(const DraftProfile &) = delete;

  // Errors name the profile's path.
  std::expected<LoadedProfile, std::vector<std::string>> load(const Arguments &arguments) const;

 private:
  const std::string path_;
  std::string draft_;
  Result<void> written_;
};

// A profile that is being edited, under a lock that excludes other editing commands of this user.
struct EditedProfile {
  OwnedFd lock;
  ProfileLayer layer;
  bool is_new = false;
};
// Waits at most five seconds for the lock. A missing file is a new, empty profile.
Result<EditedProfile> open_profile(const std::string &path);

// Both print that the profile was not changed, with the reason, and return exit_failed.
int profile_unchanged(const std::string &path, const std::vector<std::string> &lines);
int profile_unchanged(const std::string &path, const Error &error);
// If a gateway with this profile is running, prints how to apply the change.
void mention_reload(const std::string &path);

}  // namespace bulkhead::program
