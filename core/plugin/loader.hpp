// Finds, verifies and loads plugin libraries.
//
// Each library file is opened only once, and the file that is mapped is the one that was verified.
// Files that are symbolic links or that other users can write are rejected. The manifest and the
// exported names are read before any of the library's code runs. If a digest or a signature must be
// verified, the library is first copied to sealed memory, and this copy is verified and mapped.
// Loading and init run on a helper thread. If they exceed a time limit, the plugin is reported, and
// the host continues.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/plugin_trust.hpp"
#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"
#include "plugin/entry_check.hpp"

namespace bulkhead {

// The content of NAME.plugin.toml, which is in the same folder as NAME.so.
struct Manifest {
  std::string id, version, description;
  std::uint32_t abi_major = 0, abi_minor_needed = 0;
  std::vector<std::string> provides;
  bool exclusive = false;  // only one process at a time can use the plugin's resources
  std::string sha256;      // of the manifest's text, in lowercase hexadecimal
};
Result<Manifest> read_manifest(const std::string &path);
// Reads the manifest `name` in an open folder. `folder` is the folder's path, for messages.
Result<Manifest> read_manifest_in(int folder_fd, const std::string &folder,
                                  const std::string &name);

struct LoadOptions {
  // Searched in this order for NAME.so, and then for NAME/NAME.so.
  std::vector<std::string> dirs;
  std::uint64_t init_timeout_ms = 5'000;  // total for static constructors, entry and init
  std::string sha256;                     // required SHA-256 in hexadecimal; empty: any
  PluginTrust trust;                      // which libraries may be loaded
  // The file of the library's signature; empty: the library's path with ".minisig" appended.
  std::string signature_file;
  // True for the program's own copy of a plugin that was installed with the program: the copy needs
  // no signature either.
  bool is_program_copy = false;
};

// A library file that was opened and verified but not mapped. This allows a process to verify its
// plugins, confine itself (with a rule for fd()), and only then run their code: the file is mapped
// through its descriptor, even if its path is inaccessible. When the file is mapped, the process's
// user still needs read permission for it.
struct CheckedLibrary {
  Manifest manifest;
  std::string path;
  OwnedFd file;          // if `sealed` is true, a sealed copy of the library in memory
  struct stat status{};  // of the library, not of its copy
  bool sealed = false;
  std::string sha256;             // of the library; set if `sealed` is true
  std::string signer;             // the ID of the key that signed it; empty: not signed
  std::string signature;          // the content of its signature file, if `signer` is set
  bool trusted_by_place = false;  // installed with the program

  int fd() const noexcept { return file.get(); }
};

// Libraries that were checked before the process was confined, by the name of the plugin. An error
// is kept because a later attempt, which can no longer access the file, would not find its reason.
using CheckedLibraries = std::map<std::string, Result<CheckedLibrary>>;

// Returns the config_schema in the file's BH_SCHEMA_SECTION. If the result is empty, the schema is
// available only after the library has been loaded. Returns BH_E_INVALID or BH_E_LIMIT if the
// section is invalid.
Result<std::string> schema_of(const CheckedLibrary &checked);

// Returns a copy for another instance of the plugin. Returns BH_E_LIMIT if no file descriptor is
// available.
Result<CheckedLibrary> duplicate(const CheckedLibrary &checked);

// A mapped library. Its destructor calls deinit, but the code stays mapped; see docs/plugins.md.
class Library {
 public:
  // Verifies, maps and initializes a library. `plugin` is a name or, if it contains a slash, the
  // path of an .so file. `host` (may be null) provides a name, a version and a log function for
  // init. It is used only until load() returns: init receives a bh_host that belongs to the loader,
  // and log lines are discarded after that. If a file is loaded twice, both Libraries share one
  // mapping, but init and deinit are called for each of them.
  //
  // Errors contain the names of the plugin and the file:
  // - BH_E_NOT_FOUND: the file or its manifest does not exist.
  // - BH_E_DENIED: other users can change the file, its manifest or its folder, a file is a
  //   symbolic link, the digest is different, or `trust` rejects the library.
  // - BH_E_INVALID: the file is damaged or is not a plugin, or its manifest is invalid or wrong.
  // - BH_E_ABI: the ABI version is incompatible.
  // - BH_E_TIMEOUT: the plugin's code did not return. Its thread is abandoned, and its file stays
  //   mapped.
  // - Others: BH_E_IO, BH_E_LIMIT, BH_E_INTERNAL, the error that init returned, or BH_E_UNAVAILABLE
  //   if the constructors of a plugin still hang.
  //
  // Must be called on the control thread. Waits at most init_timeout_ms for the plugin's code.
  static Result<std::shared_ptr<Library>> load(const std::string &plugin, const bh_host *host,
                                               const LoadOptions &options);
  // The two steps of load(). check() uses all options except `init_timeout_ms`, and does not
  // run the plugin's code. load() with a CheckedLibrary uses only `init_timeout_ms`.
  static Result<CheckedLibrary> check(const std::string &plugin, const LoadOptions &options);
  static Result<std::shared_ptr<Library>> load(CheckedLibrary checked, const bh_host *host,
                                               const LoadOptions &options);
  // Initializes the linked-in plugin with the ID `plugin`.
  static Result<std::shared_ptr<Library>> from_entry(const std::string &plugin,
                                                     bh_plugin_entry_fn entry, const bh_host *host,
                                                     const LoadOptions &options);
  ~Library();
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  const bh_entry &entry() const noexcept { return *entry_; }
  // The manifest of a linked-in plugin is generated from its descriptor.
  const Manifest &manifest() const noexcept { return manifest_; }
  // The descriptor with the manifest's ID. This ID is passed to create().
  const PluginDescription &description() const noexcept { return description_; }
  // Empty for a linked-in plugin.
  const std::string &path() const noexcept { return path_; }

 private:
  friend struct LibraryMaker;
  Library() = default;
  const bh_entry *entry_ = nullptr;
  Manifest manifest_;
  PluginDescription description_;
  std::string path_;
  std::shared_ptr<void> init_host_;  // the bh_host passed to init, which plugins may keep
};

// The text of BH_E_TIMEOUT from load() contains this. Plugins also return BH_E_TIMEOUT, for other
// reasons.
inline constexpr std::string_view hang_words = "did not return from ";

// Loads a plugin from `checked` if the map contains its library, and otherwise from the plugin
// folders. If they cannot be accessed and the map contains an error, returns this error.
Result<std::shared_ptr<Library>> load_library(const std::string &plugin,
                                              const CheckedLibraries &checked,
                                              const LoadOptions &options);

// A manifest found in a folder, for `plugin list`. `error` is set if the manifest is invalid or has
// the ID of another plugin, or if the library is missing.
struct FoundPlugin {
  std::string path, error;
  Manifest manifest;
};
std::vector<FoundPlugin> list_plugins(const std::vector<std::string> &dirs);
// Describes the plugin in a library file, based on the manifest in the same folder.
FoundPlugin describe_plugin(const std::string &path);

}  // namespace bulkhead
