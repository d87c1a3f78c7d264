// Private directories of plugin instances, and the small secrets in these directories.
//
// Runs on the control thread. Every file has mode 0600. Every folder has mode 0700 and is owned by
// this user. Symbolic links are rejected.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace bulkhead {

// Creates <state_dir>/<kind>/<instance> and its parents, and returns its absolute path.
Result<std::string> private_folder(const std::string &state_dir, const std::string &kind,
                                   const std::string &instance);

// Reads <folder>/<name>. Returns BH_E_NOT_FOUND if it does not exist, or BH_E_DENIED if other users
// could read or change it.
Result<std::string> read_secret(const std::string &folder, std::string_view name,
                                std::size_t max_bytes);

inline constexpr std::size_t max_secrets = 64;  // per instance

// Replaces the value atomically: readers see either the old or the new value, even after a power
// failure. An empty value deletes the secret. Returns BH_E_LIMIT if the folder already contains
// max_secrets other secrets.
Result<void> write_secret(const std::string &folder, std::string_view name, std::string_view value);

}  // namespace bulkhead
