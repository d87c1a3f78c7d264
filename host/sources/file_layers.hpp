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

// Returns the layers of all profiles that `file` extends, followed by the layer of `file` itself.
// Errors are returned as lines for the user.
//
// The profile named ID is read from ID.toml, ID.json or ID/profile.toml. The directory of `file` is
// searched first, followed by `profiles` in the configuration directory and /etc/bulkhead/profiles.
std::expected<std::vector<ProfileLayer>, std::vector<std::string>> read_file_layers(
    const std::string &file);

// Returns the layers from ~/.gemini/settings.json and ~/.claude/settings.json, lowest first.
// Missing files are skipped. If a file cannot be read, a note is added.
std::vector<ProfileLayer> read_detected_layers(std::vector<std::string> *notes);

}  // namespace bulkhead::program
