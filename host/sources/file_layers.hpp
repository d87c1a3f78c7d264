// The layers that are files: the profile, the profiles it extends, and settings of other programs.
//
// Thread: any; blocks for files.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead::program {

// The layer "file" after the profiles that it extends. Those are found by id as ID.toml, ID.json
// and ID/profile.toml, in the folder of the file, in `profiles` beside the default profile, and in
// /etc/bulkhead/profiles. Returns an error, as lines for the user, if one cannot be read or the
// chain is invalid.
std::expected<std::vector<ProfileLayer>, std::vector<std::string>> read_file_layers(
    const std::string &file);

// ~/.gemini/settings.json and ~/.claude/settings.json, lowest layer first, if they exist;
// unreadable parts become notes.
std::vector<ProfileLayer> read_detected_layers(std::vector<std::string> *notes);

}  // namespace bulkhead::program
