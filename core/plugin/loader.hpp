// Finds, checks and loads plugin libraries.
//
// A library is opened once (no symlink, nothing group- or world-writable), its manifest and exports
// are read before any of its code runs, and the checked file itself is mapped. Loading and init run
// on a helper thread with a time-out: a plugin that hangs is reported and does not block the host.
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

// NAME.plugin.toml, beside NAME.so.
struct Manifest {
  std::string id, version, description;
  std::uint32_t abi_major = 0, abi_minor_needed = 0;
  std::vector<std::string> provides;
  bool exclusive = false;  // its resources can be held by one process at a time
};
Result<Manifest> read_manifest(const std::string &path);

struct LoadOptions {
  std::vector<std::string> dirs;          // searched in order for NAME.so
  std::uint64_t init_timeout_ms = 5'000;  // for static constructors, entry and init together
  std::string sha256;                     // required digest in hex; empty: any
};

// An opened and checked library file; none of its code has run. It is mapped later through its
// descriptor, even if its path has become inaccessible. So a process can check its plugins, confine
// itself (with a rule for fd()) and only then run their code. The process's user at that time must
// be allowed to read the file.
struct CheckedLibrary {
  Manifest manifest;
  std::string path;
  OwnedFd file;
  struct stat status{};

  int fd() const noexcept { return file.get(); }
};

// Returns the config_schema in the file itself (BH_SCHEMA_SECTION); empty: there is none, and the
// descriptor's is known only when the code runs. BH_E_INVALID, BH_E_LIMIT: the section is invalid.
Result<std::string> schema_of(const CheckedLibrary &checked);

// Returns a copy, for several instances of one plugin. BH_E_LIMIT: no descriptor is free.
Result<CheckedLibrary> duplicate(const CheckedLibrary &checked);

// A mapped library. Destroying it calls deinit; the code stays mapped (retired), see
// docs/plugins.md.
class Library {
 public:
  // `plugin` is a name or, if it contains a slash, a path that ends in .so. Errors name the plugin
  // and the file. `host` (may be null) provides its name, version and log, and is used only until
  // load() returns: init receives a bh_host of the loader, whose log is discarded afterwards.
  // Loading the same file twice gives two Libraries over one mapping, each with its own init and
  // deinit.
  //
  // BH_E_NOT_FOUND: no such file. BH_E_DENIED: other users could change it, it is a symbolic link,
  // or its digest is not the pinned one. BH_E_INVALID: damaged, or not a plugin. BH_E_ABI: another
  // ABI. BH_E_TIMEOUT: its code did not return; its thread is abandoned and its file stays mapped.
  // Thread: control. Blocks for at most init_timeout_ms.
  static Result<std::shared_ptr<Library>> load(const std::string &plugin, const bh_host *host,
                                               const LoadOptions &options);
  // The same in two steps. check() uses `dirs` and `sha256` and fails as load() does, except for
  // BH_E_TIMEOUT; the second step uses `init_timeout_ms`.
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
  // For a linked-in plugin: created from its descriptor.
  const Manifest &manifest() const noexcept { return manifest_; }
  // The descriptor whose id is the manifest's; create() takes this id.
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
  std::shared_ptr<void> init_host_;  // the bh_host of init; plugins may have kept the pointer
};

// Loads the file in `checked` if it is there, else the file found in the folders.
Result<std::shared_ptr<Library>> load_library(const std::string &plugin,
                                              const std::map<std::string, CheckedLibrary> &checked,
                                              const LoadOptions &options);

// All manifests in these folders, for `plugin list`; an unreadable manifest has an error text.
struct FoundPlugin {
  std::string path, error;
  Manifest manifest;
};
std::vector<FoundPlugin> list_plugins(const std::vector<std::string> &dirs);
// The plugin whose library is this file, from the manifest next to it.
FoundPlugin describe_plugin(const std::string &path);

}  // namespace bulkhead
