// Stores copies of plugin files, addressed by their SHA-256. A swapped plugin runs from its copy,
// so it can be restarted, and the version before it can be restored, even if the original file has
// been overwritten.
//
// The copies are in STATE/swapped/DIGEST, which servers cannot access; DIGEST is the SHA-256 of the
// library's SHA-256, the manifest and the signature. A gateway that uses a copy holds a shared lock
// on its folder. Thread-safe; all functions block for file access.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/owned_fd.hpp"
#include "plugin/loader.hpp"

namespace bulkhead::program {

inline constexpr std::string_view plugin_store_folder = "/swapped";  // in the state folder
inline constexpr std::uint64_t max_plugin_bytes = 256u << 20;

// A plugin's file, held open, and the text of its manifest.
struct OpenPlugin {
  CheckedLibrary library;
  std::string manifest_text;
};

// A copy in the store. It is kept at least as long as this object exists.
struct StoredPlugin {
  std::string id, version;
  std::string path;    // of the library
  std::string sha256;  // in lowercase hexadecimal
  std::string signer;  // the ID of the key that signed it; empty: not signed by a trusted key
  bool exclusive = false;
  bool is_program_copy = false;  // the original was installed with the program
  OwnedFd lock;
};

// Opens and checks a plugin. Returns the errors of Library::check(), and BH_E_LIMIT if the file or
// its manifest is too large.
Result<OpenPlugin> open_plugin(const std::string &plugin, const LoadOptions &options);

// Copies the plugin to the store, unless the store already has the copy. Checks the copy like
// Library::check(). Returns BH_E_UNAVAILABLE if another gateway is removing the same copy.
Result<StoredPlugin> store_plugin(const std::string &state_dir, const OpenPlugin &plugin);

// Removes all copies that no gateway uses.
void remove_unused_plugins(const std::string &state_dir);

}  // namespace bulkhead::program
