// Finds, checks and loads plugin libraries.
//
// A library is opened once; symbolic links and group- or world-writable files are rejected. Its
// manifest and exports are read before any of its code runs, and the checked file itself is mapped.
// Loading and init run on a helper thread with a time-out, so a hanging plugin is reported and does
// not block the host.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"
#include "plugin/entry_check.hpp"

namespace bulkhead {

// The content of NAME.plugin.toml, which is in the same folder as NAME.so.
struct Manifest {
  std::string id, version, description;
  std::uint32_t abi_major = 0, abi_minor_needed = 0;
  std::vector<std::string> provides;
  bool exclusive = false;  // its resources can be used by only one process at a time
};
Result<Manifest> read_manifest(const std::string &path);

struct LoadOptions {
  std::vector<std::string> dirs;          // searched in order for NAME.so
  std::uint64_t init_timeout_ms = 5'000;  // total for static constructors, entry and init
  std::string sha256;                     // required digest in hex; empty: any digest
};

// A library file that has been opened and checked but whose code has not run. It is later mapped
// through its descriptor, even if its path has become inaccessible. A process can therefore check
// its plugins, confine itself (with a rule for fd()), and only then run their code. When the file
// is mapped, the process's user must be allowed to read it.
struct CheckedLibrary {
  Manifest manifest;
  std::string path;
  OwnedFd file;
  struct stat status{};

  int fd() const noexcept { return file.get(); }
};

// Returns the config_schema stored in the file (BH_SCHEMA_SECTION). If the result is empty, the
// schema is available only after the code has run. Returns BH_E_INVALID or BH_E_LIMIT if the
// section is invalid.
Result<std::string> schema_of(const CheckedLibrary &checked);

// Returns a copy for another instance of the same plugin. Returns BH_E_LIMIT if no descriptors are
// available.
Result<CheckedLibrary> duplicate(const CheckedLibrary &checked);

// A mapped library. Its destructor calls deinit, but the code stays mapped; see docs/plugins.md.
class Library {
 public:
  // `plugin` is a name or, if it contains a slash, a path that ends in .so. Errors name the plugin
  // and the file. `host` (may be null) provides its name, version and log, and is used only until
  // load() returns: init receives a bh_host of the loader, which then discards log lines. Loading a
  // file twice creates two Libraries that share one mapping but have separate init and deinit
  // calls.
  //
  // Errors:
  // BH_E_NOT_FOUND: the file does not exist.
  // BH_E_DENIED: other users could change the file, it is a symbolic link, or its digest does not
  // match.
  // BH_E_INVALID: the file is damaged or is not a plugin.
  // BH_E_ABI: the ABI version is incompatible.
  // BH_E_TIMEOUT: the plugin's code did not return; its thread is abandoned and its file stays
  // mapped.
  //
  // Runs on the control thread. Blocks for at most init_timeout_ms.
  static Result<std::shared_ptr<Library>> load(const std::string &plugin, const bh_host *host,
                                               const LoadOptions &options);
  // Loading takes two steps. check() uses `dirs` and `sha256` and returns the errors listed above
  // except BH_E_TIMEOUT. load() uses `init_timeout_ms`.
  static Result<CheckedLibrary> check(const std::string &plugin, const LoadOptions &options);
  static Result<std::shared_ptr<Library>> load(CheckedLibrary checked, const bh_host *host,
                                               const LoadOptions &options);
  static Result<std::shared_ptr<Library>> from_entry(const std::string &plugin,
                                                     bh_plugin_entry_fn entry, const bh_host *host,
                                                     const LoadOptions &options);
  ~Library();
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  const bh_entry &entry() const noexcept { return *entry_; }
  // The manifest of a linked-in plugin is created from its descriptor.
  const Manifest &manifest() const noexcept { return manifest_; }
  // The descriptor with the manifest's id. This id is passed to create().
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
  std::shared_ptr<void> init_host_;  // the bh_host passed to init; plugins may keep the pointer
};

// Loads the plugin's file from `checked` or, if it is not listed there, from the folders.
Result<std::shared_ptr<Library>> load_library(const std::string &plugin,
                                              const std::map<std::string, CheckedLibrary> &checked,
                                              const LoadOptions &options);

// A manifest found in the folders, for `plugin list`. `error` is set if the manifest is unreadable.
struct FoundPlugin {
  std::string path, error;
  Manifest manifest;
};
std::vector<FoundPlugin> list_plugins(const std::vector<std::string> &dirs);
// Describes the plugin in this library file, using the manifest in the same folder.
FoundPlugin describe_plugin(const std::string &path);

}  // namespace bulkhead
