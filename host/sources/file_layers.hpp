// The layers that are files: the profile, the profiles that it extends, and settings of other
// programs.
//
// Thread-safe; blocks for file access.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead::program {

// Returns the layer "file", preceded by the profiles that it extends. A profile ID is found as
// ID.toml, ID.json or ID/profile.toml in the folder of the file, in `profiles` beside the default
// profile, or in /etc/bulkhead/profiles. If a file cannot be read or the chain is invalid, returns
// errors as lines for the user.
std::expected<std::vector<ProfileLayer>, std::vector<std::string>> read_file_layers(
    const std::string &file);

// Returns the layers of ~/.gemini/settings.json and ~/.claude/settings.json that exist, the lowest
// layer first. Unreadable parts become notes.
std::vector<ProfileLayer> read_detected_layers(std::vector<std::string> *notes);

}  // namespace bulkhead::program
