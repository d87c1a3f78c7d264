// The layers that are files: the profile with those that it extends, and other programs' settings.
//
// Thread: any; blocks for files.
#pragma once

#include <expected>
#include <string>
#include <vector>

#include "profile/layer.hpp"

namespace bulkhead::program {

// The layer "file", behind the profiles that it extends: those are looked for by their ids as
// ID.toml, ID.json and ID/profile.toml, in the folder of the file, in `profiles` beside the default
// profile, and in /etc/bulkhead/profiles. An error, as lines for people: one cannot be read, or the
// chain is wrong.
std::expected<std::vector<ProfileLayer>, std::vector<std::string>> read_file_layers(
    const std::string &file);

// ~/.gemini/settings.json and ~/.claude/settings.json, lowest first, as far as they are there; what
// cannot be read of them becomes a note.
std::vector<ProfileLayer> read_detected_layers(std::vector<std::string> *notes);

}  // namespace bulkhead::program
