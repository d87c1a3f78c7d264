// Verifies the minisign signature of a plugin (docs/plugins.md, "Trust"). The signature covers the
// library's bytes; its trusted comment covers the manifest. Thread-safe.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/plugin_trust.hpp"
#include "base/result.hpp"
#include "plugin/loader.hpp"

namespace bulkhead {

// The signature of NAME.so is in NAME.so.minisig.
inline constexpr std::string_view signature_suffix = ".minisig";

// Returns the trusted comment that a signature of this plugin must have:
//   bulkhead-plugin id=NAME version=1.2.3 abi=1.0 manifest=SHA256
// `abi` is the version that the manifest requires, and `manifest` is the digest of the manifest's
// file. Returns BH_E_INVALID if the manifest's version cannot be signed: it must have 1 to 64
// characters from A-Z, a-z, 0-9, '.', '-' and '+'.
Result<std::string> signing_comment(const Manifest &manifest);

// Decides whether a library may be loaded. `bytes` is the library, and `signature` is the content
// of its signature file, if there is one. Returns the ID of the key that signed it, or an empty
// string if the library has no signature by a trusted key and needs none.
//
// Returns BH_E_DENIED if the trust settings reject the library, or if a trusted key's signature
// does not match the library or the manifest. Returns BH_E_INVALID if the signature file is
// damaged. Error texts begin with a verb, because the caller prepends the plugin's name.
Result<std::string> verify_plugin(const Manifest &manifest, std::string_view bytes,
                                  const std::optional<std::string> &signature,
                                  const PluginTrust &trust);

// Return BH_E_DENIED if the settings revoke or quarantine the library with this SHA-256.
Result<void> check_revoked(const std::string &digest, const PluginTrust &trust);
Result<void> check_quarantine(const std::string &digest, const PluginTrust &trust);

}  // namespace bulkhead
