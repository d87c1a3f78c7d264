// Finding, checking and loading plugin libraries, and the life of their instances.
//
// A library is opened once (no symlink, nothing group- or world-writable), its manifest and exports
// are read before any of its code runs, and the very file that was checked is mapped. Loading and
// init run on a helper thread with a time-out, so that a plugin that hangs is named instead of
// hanging the host.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/plugin.h"

namespace bulkhead {

// NAME.plugin.toml, beside NAME.so.
struct Manifest {
  std::string id, version, description;
  std::uint32_t abi_major = 0, abi_minor_needed = 0;
  std::vector<std::string> provides;
};
Result<Manifest> read_manifest(const std::string &path);

struct LoadOptions {
  std::vector<std::string> dirs;  // searched in order for NAME.so
  std::uint64_t init_timeout_ms = 5'000;
  std::string sha256;             // required digest; empty: any
};

// A mapped library, generation by generation. Destroying it calls deinit; the code stays mapped
// (retired), see docs/architecture.md.
class Library {
 public:
  // `plugin` is a name or, with a slash in it, a path. Errors name the plugin and the file.
  static Result<std::shared_ptr<Library>> load(const std::string &plugin, const bh_host *host,
                                               const LoadOptions &options);
  static Result<std::shared_ptr<Library>> from_entry(const std::string &plugin,
                                                     bh_plugin_entry_fn entry, const bh_host *host,
                                                     const LoadOptions &options);
  ~Library();
  Library(const Library &) = delete;
  Library &operator=(const Library &) = delete;

  const bh_entry &entry() const noexcept { return *entry_; }
  const Manifest &manifest() const noexcept { return manifest_; }
  const std::string &path() const noexcept { return path_; }

 private:
  Library() = default;
  const bh_entry *entry_ = nullptr;
  Manifest manifest_;
  std::string path_;
};

// All manifests in these folders, for `plugin list`; unreadable ones carry an error text.
struct FoundPlugin {
  std::string path, error;
  Manifest manifest;
};
std::vector<FoundPlugin> list_plugins(const std::vector<std::string> &dirs);

}  // namespace bulkhead
