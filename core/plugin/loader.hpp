// Finding, checking and loading plugin libraries, and the life of their instances.
//
// A library is opened once (no symlink, nothing group- or world-writable), its manifest and exports
// are read before any of its code runs, and the very file that was checked is mapped. Loading and
// init run on a helper thread with a time-out, so that a plugin that hangs is named instead of
// hanging the host.
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
  bool exclusive = false;  // what it holds can be held by one process at a time
};
Result<Manifest> read_manifest(const std::string &path);

struct LoadOptions {
  std::vector<std::string> dirs;          // searched in order for NAME.so
  std::uint64_t init_timeout_ms = 5'000;  // for static constructors, entry and init together
  std::string sha256;                     // required digest in hex; empty: any
};

// A library's file, opened and checked; nothing of its code has run. What is mapped later is this
// very file, through its descriptor, so it may be out of reach by its path then: a process checks
// its plugins, confines itself (with a rule for fd()) and only then lets their code in. The user it
// has become must be allowed to read the file.
struct CheckedLibrary {
  Manifest manifest;
  std::string path;
  OwnedFd file;
  struct stat status{};

  int fd() const noexcept { return file.get(); }
};

// The config_schema that the file itself shows (BH_SCHEMA_SECTION); empty: it shows none, and what
// is in the descriptor is known only when its code runs. BH_E_INVALID, BH_E_LIMIT: the section is
// wrong.
Result<std::string> schema_of(const CheckedLibrary &checked);

// For several instances of one plugin. BH_E_LIMIT: no descriptor is free.
Result<CheckedLibrary> duplicate(const CheckedLibrary &checked);

// A mapped library, generation by generation. Destroying it calls deinit; the code stays mapped
// (retired), see docs/plugins.md.
class Library {
 public:
  // `plugin` is a name or, with a slash in it, a path that ends in .so. Errors name the plugin and
  // the file. `host` (may be null) is used for its name, version and log, and only until load()
  // returns: init sees a bh_host of the loader's own, whose log goes nowhere afterwards. Loading
  // the same file twice gives two Libraries over one mapping, each with its own init and deinit.
  //
  // BH_E_NOT_FOUND: no such file. BH_E_DENIED: others could change it, a symbolic link, or not the
  // pinned digest. BH_E_INVALID: damaged, or no plugin. BH_E_ABI: another ABI. BH_E_TIMEOUT: did
  // not return; its thread is left behind and its file stays mapped.
  // Thread: control. It waits at most init_timeout_ms for the plugin's code.
  static Result<std::shared_ptr<Library>> load(const std::string &plugin, const bh_host *host,
                                               const LoadOptions &options);
  // The same in two steps. check() uses `dirs` and `sha256` and fails as load() does, but for
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
  // Of a linked-in plugin: made from its descriptor.
  const Manifest &manifest() const noexcept { return manifest_; }
  // What the descriptor with the manifest's id says; create() takes this id.
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
  std::shared_ptr<void> init_host_;  // what init was given; plugins may have kept the pointer
};

// Library::load() of the file in `checked`, if it is there, else of what is found in the folders.
Result<std::shared_ptr<Library>> load_library(const std::string &plugin,
                                              const std::map<std::string, CheckedLibrary> &checked,
                                              const LoadOptions &options);

// All manifests in these folders, for `plugin list`; unreadable ones carry an error text.
struct FoundPlugin {
  std::string path, error;
  Manifest manifest;
};
std::vector<FoundPlugin> list_plugins(const std::vector<std::string> &dirs);
// The one whose library is this file, by its manifest beside it.
FoundPlugin describe_plugin(const std::string &path);

}  // namespace bulkhead
