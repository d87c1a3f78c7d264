// Private folders of plugin instances, and small secrets kept in them.
//
// Thread: control. Every file is 0600, every folder 0700 and ours; symbolic links are refused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace bulkhead {

// Makes <state_dir>/<kind>/<instance> (and what is missing above it) and returns its absolute path.
Result<std::string> private_folder(const std::string &state_dir, const std::string &kind,
                                   const std::string &instance);

// Reads <folder>/<name>. BH_E_NOT_FOUND, or BH_E_DENIED when others could read or change it.
Result<std::string> read_secret(const std::string &folder, std::string_view name,
                                std::size_t max_bytes);

inline constexpr std::size_t max_secrets = 64;  // of one instance

// Replaces it in one step, so that a reader sees the old or the new value, also after a power cut.
// An empty value deletes. BH_E_LIMIT: the folder has max_secrets others.
Result<void> write_secret(const std::string &folder, std::string_view name, std::string_view value);

}  // namespace bulkhead
