// Private directories of plugin instances, and the small secrets in them.
//
// Thread: control. Every file is 0600, every folder 0700 and owned by this user; symbolic links are
// refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace bulkhead {

// Creates <state_dir>/<kind>/<instance> with its parents and returns its absolute path.
Result<std::string> private_folder(const std::string &state_dir, const std::string &kind,
                                   const std::string &instance);

// Reads <folder>/<name>. BH_E_NOT_FOUND, or BH_E_DENIED if other users could read or change it.
Result<std::string> read_secret(const std::string &folder, std::string_view name,
                                std::size_t max_bytes);

inline constexpr std::size_t max_secrets = 64;  // per instance

// Replaces the value atomically: a reader sees the old or the new one, also after a power failure.
// An empty value deletes. BH_E_LIMIT: the folder has max_secrets others.
Result<void> write_secret(const std::string &folder, std::string_view name, std::string_view value);

}  // namespace bulkhead
