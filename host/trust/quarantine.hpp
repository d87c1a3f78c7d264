// The list of plugin files that crashed or hung while they were being started. The loader rejects
// these files (PluginTrust::quarantined) until the user removes them from the list. A file is
// identified by its digest, so a repaired file is not affected.
//
// The list is quarantine/list.json in the state folder, which servers cannot access. It is replaced
// atomically under a lock. Thread-safe. Every function accesses the disk.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

struct QuarantinedPlugin {
  std::string sha256, id, version;
  std::string reason;    // one line
  std::uint64_t at = 0;  // milliseconds since 1970
};

class Quarantine {
 public:
  static constexpr std::size_t max_entries = 256;  // beyond that, the oldest entry is dropped
  static constexpr std::uint64_t lock_wait_ms = 2'000;

  explicit Quarantine(const std::string &state_dir) : folder_(state_dir + "/quarantine") {}

  // Returns the entries, oldest first; none if there is no list.
  Result<std::vector<QuarantinedPlugin>> read() const;
  // Adds an entry, or replaces the one with the same digest.
  Result<void> add(QuarantinedPlugin entry);
  // Removes the entries with this digest or plugin ID, and returns them.
  Result<std::vector<QuarantinedPlugin>> clear(const std::string &digest_or_id);

 private:
  Result<void> write(const std::vector<QuarantinedPlugin> &entries) const;

  const std::string folder_;
};

// Adds the library of a plugin to the list, and logs it. `plugin` is what the profile uses. Returns
// the entry. The SHA-256 of the entry is empty if the plugin was installed with the program: such a
// plugin is not quarantined, because the gateway cannot work without it.
Result<QuarantinedPlugin> quarantine_plugin(const Profile &profile, const PluginUse &plugin,
                                            const std::string &reason);

// Adds the digests of the list in the profile's state folder to its plugin_trust. If the list is
// damaged, adds a note to the profile.
void add_quarantine(Profile *profile);

}  // namespace bulkhead::program
