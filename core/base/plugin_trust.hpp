// Describes which plugins may be loaded: the profile's section [plugin_trust].
#pragma once

#include <string>
#include <vector>

namespace bulkhead {

struct PluginTrust {
  std::vector<std::string> trusted_keys;     // minisign public keys ("RW...")
  bool require_signatures = false;           // if true, unsigned plugins are rejected
  std::vector<std::string> revoked_keys;     // key IDs, as 16 uppercase hexadecimal digits
  std::vector<std::string> revoked_digests;  // SHA-256 of libraries, in lowercase hexadecimal
  // SHA-256 of the libraries that crashed or hung while they were being started, in lowercase
  // hexadecimal. The program sets it; the profile has no key for it.
  std::vector<std::string> quarantined;
  // The folder of the plugins that are installed with the program. These plugins need no signature,
  // because a user who can write there can also replace the program. The program sets it; if it is
  // empty, no plugin is trusted by its location.
  std::string program_dir;
  bool operator==(const PluginTrust &) const = default;
};

}  // namespace bulkhead
