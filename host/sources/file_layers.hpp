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

// Returns the layer "file", preceded by the profiles that it extends. These are found by id as
// ID.toml, ID.json and ID/profile.toml, in the folder of the file, in `profiles` beside the default
// profile, and in /etc/bulkhead/profiles. Returns an error, as lines for the user, if a file cannot
// be read or the chain is invalid.
std::expected<std::vector<ProfileLayer>, std::vector<std::string>> read_file_layers(
    const std::string &file);

// Returns ~/.gemini/settings.json and ~/.claude/settings.json, the lowest layer first, if they
// exist. Unreadable parts become notes.
std::vector<ProfileLayer> read_detected_layers(std::vector<std::string> *notes);

}  // namespace bulkhead::program
