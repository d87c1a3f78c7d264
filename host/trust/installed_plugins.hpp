// The user's store of plugins, which `bulkhead plugin add` and `remove` change.
//
// The store is a plugin folder: each plugin has a folder of its own, ID/, with ID.so,
// ID.plugin.toml and, if it is signed, ID.so.minisig. A folder is prepared beside the others and
// then exchanged in one step, so that a gateway or a killed command sees either the old version or
// the new one. A process that changes the store holds a lock on `.lock`.
//
// Thread-safe. Every function accesses the disk.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/owned_fd.hpp"
#include "plugin/loader.hpp"
#include "trust/plugin_log.hpp"

namespace bulkhead::program {

struct InstalledPlugin {
  std::string id, version;
  std::string sha256;  // of the library, in lowercase hexadecimal
  std::string signer;  // the ID of the key that signed it; empty: not signed by a trusted key
  std::string path;    // of the library
};

struct PluginAdd {
  std::string file;            // the library, with its manifest in the same folder
  std::string signature_file;  // empty: `file` with ".minisig" appended, if it exists
  bool allow_older = false;    // permit a version older than the installed one
  bool dry_run = false;        // verify only
};

struct PluginAdded {
  InstalledPlugin now;
  InstalledPlugin before;  // the replaced version; the ID is empty if there was none
  bool unchanged = false;  // this version was already installed
};

class InstalledPlugins {
 public:
  static constexpr std::size_t max_plugins = 256;
  static constexpr std::uint64_t lock_wait_ms = 10'000;

  // Changes are logged in `state_dir`; see PluginLog.
  InstalledPlugins(std::string folder, std::string state_dir)
      : folder_(std::move(folder)), state_dir_(std::move(state_dir)) {}

  const std::string &folder() const noexcept { return folder_; }

  // Verifies and installs a plugin. Returns the errors of Library::check(); BH_E_DENIED if the
  // version is older than the installed one, if a named signature was not made with a trusted key,
  // or if other users can change the store; BH_E_LIMIT if the store is full; BH_E_UNAVAILABLE if
  // another process changes the store; BH_E_IO.
  Result<PluginAdded> add(const PluginAdd &request, const PluginTrust &trust);

  // Removes a plugin and returns it. Returns BH_E_NOT_FOUND if it is not installed. The version and
  // digest are empty if its files are damaged.
  Result<InstalledPlugin> remove(const std::string &id, bool dry_run);

  // Called before each step of a change, for tests.
  std::function<void(const char *step)> on_step;

 private:
  struct Candidate;
  std::string path_of(const std::string &id) const { return folder_ + "/" + id + "/" + id + ".so"; }
  InstalledPlugin installed(const std::string &id) const;
  Result<OwnedFd> lock() const;
  void remove_leftovers() const;
  Result<std::string> prepare(const Candidate &candidate, const LoadOptions &options) const;
  Result<void> publish(const std::string &prepared, const std::string &id, bool replaces) const;
  void step(const char *name) const {
    if (on_step) on_step(name);
  }

  const std::string folder_, state_dir_;
};

}  // namespace bulkhead::program
