#include "plugin/plugin_signature.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "bulkhead/cpp/text.hpp"
#include "signing/minisign.hpp"

namespace bulkhead {
namespace {

bool contains(const std::vector<std::string> &list, std::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

bool is_version(std::string_view text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return bh::is_letter_or_digit(c) || c == '.' || c == '-' || c == '+';
  });
}

// The profile has already checked the keys. Nevertheless, an invalid key is an error, because an
// embedding program can set them, too.
Result<std::vector<MinisignKey>> keys_of(const PluginTrust &trust) {
  if (trust.trusted_keys.empty()) return std::vector<MinisignKey>();
  std::string text;
  for (const std::string &key : trust.trusted_keys) text += key + "\n";
  return read_minisign_keys(text);
}

std::unexpected<Error> unsigned_error(const PluginTrust &trust) {
  return fail(BH_E_DENIED,
              std::string("is not signed, but plugin_trust.require_signatures is true") +
                  (trust.trusted_keys.empty() ? ", and the profile has no plugin_trust.trusted_keys"
                                              : "; `bulkhead plugin verify` shows how to sign it"));
}

}  // namespace

Result<std::string> signing_comment(const Manifest &manifest) {
  if (!is_version(manifest.version))
    return fail(BH_E_INVALID,
                "has a version in its manifest that cannot be signed: it must have 1 to 64 "
                "characters from A-Z, a-z, 0-9, '.', '-' and '+'");
  return "bulkhead-plugin id=" + manifest.id + " version=" + manifest.version +
         " abi=" + std::to_string(manifest.abi_major) + "." +
         std::to_string(manifest.abi_minor_needed) + " manifest=" + manifest.sha256;
}

Result<std::string> verify_plugin(const Manifest &manifest, std::string_view bytes,
                                  const std::optional<std::string> &signature,
                                  const PluginTrust &trust) {
  if (!signature) {
    if (trust.require_signatures) return unsigned_error(trust);
    return std::string();
  }
  const auto id = claimed_minisign_key_id(*signature);
  if (!id) return fail(id.error().code, "has an invalid signature: " + id.error().text);
  if (contains(trust.revoked_keys, *id))
    return fail(BH_E_DENIED, "is signed with the key " + *id +
                                 ", which plugin_trust.revoked_keys in the profile revokes");
  const auto keys = keys_of(trust);
  if (!keys)
    return fail(BH_E_DENIED, "cannot be verified: plugin_trust.trusted_keys: " + keys.error().text);
  const bool known = std::any_of(keys->begin(), keys->end(), [&](const MinisignKey &key) {
    return minisign_key_id(key) == *id;
  });
  if (!known) {
    if (!trust.require_signatures) return std::string();
    return fail(BH_E_DENIED, "is signed with the key " + *id +
                                 ", which is not in plugin_trust.trusted_keys of the profile");
  }
  const auto comment = verify_minisign(bytes, *signature, *keys);
  if (!comment)
    return fail(BH_E_DENIED,
                "has an invalid signature by the key " + *id + ": " + comment.error().text);
  const auto wanted = signing_comment(manifest);
  if (!wanted) return wanted;
  if (*comment != *wanted)
    return fail(BH_E_DENIED,
                "is signed for another plugin or manifest: the signature's trusted "
                "comment is \"" +
                    bh::one_line(*comment, 512) + "\", but it must be \"" + *wanted + "\"");
  return *id;
}

Result<void> check_revoked(const std::string &digest, const PluginTrust &trust) {
  if (contains(trust.revoked_digests, digest))
    return fail(
        BH_E_DENIED,
        "is revoked: plugin_trust.revoked_digests in the profile lists its SHA-256 " + digest);
  return {};
}

Result<void> check_quarantine(const std::string &digest, const PluginTrust &trust) {
  if (contains(trust.quarantined, digest))
    return fail(BH_E_DENIED,
                "is quarantined because it crashed or hung while it was being started. Install a "
                "repaired version, or run `bulkhead plugin verify --clear` with its path or ID");
  return {};
}

}  // namespace bulkhead
