// Reads the profile layers that are stored in files: the profile, the profiles that it extends, and
// the settings of other programs.
//
// Thread-safe. Blocks for file access.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead::program {

// Returns the layer of `file`, preceded by the layers of the profiles that it extends. Errors are
// returned as lines for the user.
//
// The profile with an ID is read from ID.toml, ID.json or ID/profile.toml. The directory of `file`
// is searched first, followed by `profiles` in the configuration directory and
// /etc/bulkhead/profiles.
std::expected<std::vector<ProfileLayer>, std::vector<std::string>> read_file_layers(
    const std::string &file);

// Returns the layers of ~/.gemini/settings.json and ~/.claude/settings.json, lowest first. Missing
// files are skipped. Files that cannot be read become notes.
std::vector<ProfileLayer> read_detected_layers(std::vector<std::string> *notes);

}  // namespace bulkhead::program
