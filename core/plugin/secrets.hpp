// Manages the private folders of plugin instances, and the secrets in these folders. Folders have
// mode 0700 and files have mode 0600; both belong to this user. Symbolic links are rejected.
// Thread-safe. Blocks on file I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace bulkhead {

// Creates <state_dir>/<kind>/<instance> and its parents. Returns the absolute path.
Result<std::string> private_folder(const std::string &state_dir, const std::string &kind,
                                   const std::string &instance);

// Reads the secret <folder>/<name>. Returns BH_E_NOT_FOUND if it does not exist, BH_E_DENIED if
// other users can read or change it, and BH_E_LIMIT if it has more than max_bytes.
Result<std::string> read_secret(const std::string &folder, std::string_view name,
                                std::size_t max_bytes);

inline constexpr std::size_t max_secrets = 64;  // limit per instance

// Writes a secret atomically: even after a power failure, readers see either the old or the new
// value. An empty value deletes the secret. Returns BH_E_LIMIT if the folder already contains
// max_secrets other secrets.
Result<void> write_secret(const std::string &folder, std::string_view name, std::string_view value);

}  // namespace bulkhead
