// Reads [plugin_trust]: which plugins may be loaded.
#include <algorithm>

#include "bulkhead/cpp/text.hpp"
#include "profile/settings.hpp"
#include "signing/minisign.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::size_t kRevokedKeys = 256;
constexpr std::size_t kRevokedDigests = 4096;
constexpr std::size_t kKeyIdDigits = 16;
constexpr std::size_t kDigestDigits = 64;

std::string uppered(std::string text) {
  for (char &c : text) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

// Reads an array of at most `most` strings. `convert` returns the form in which a string is stored,
// or nullopt if it is invalid. `form` describes the valid strings. A string that is listed twice is
// stored once.
void read_list(const KeyValue &input, std::size_t most, std::string_view form,
               std::optional<std::string> (*convert)(const std::string &text),
               std::vector<std::string> *out) {
  const auto list = input.diagnostics().strings(input.value(), input.path);
  if (!list) return;
  if (list->size() > most)
    return input.reject_key("more than " + std::to_string(most) + " entries");
  out->clear();
  for (std::size_t i = 0; i < list->size(); ++i) {
    auto stored = convert((*list)[i]);
    if (!stored)
      input.diagnostics().error(input.value().items[i].place,
                                input.path + '[' + std::to_string(i) + ']',
                                in_quotes((*list)[i]) + " is not " + std::string(form));
    else if (std::find(out->begin(), out->end(), *stored) == out->end())
      out->push_back(*std::move(stored));
  }
}

// Returns the ID of a minisign public key, or an empty string.
std::string key_id(const std::string &key) {
  if (key.find_first_of("\r\n") != std::string::npos) return {};
  const auto keys = read_minisign_keys(key);
  return keys && keys->size() == 1 ? minisign_key_id(keys->front()) : "";
}

void read_trusted_keys(const Key<PluginTrust> &, const KeyValue &input, PluginTrust &trust) {
  read_list(
      input, kMinisignKeys,
      "a minisign public key; copy the second line of the .pub file, which begins with \"RW\"",
      [](const std::string &text) {
        return key_id(text).empty() ? std::nullopt : std::optional(text);
      },
      &trust.trusted_keys);
  std::vector<std::string> ids;
  for (const std::string &key : trust.trusted_keys) {
    std::string id = key_id(key);
    if (std::find(ids.begin(), ids.end(), id) != ids.end())
      return input.reject("two different keys have the ID " + id + "; remove one of them");
    ids.push_back(std::move(id));
  }
}

void read_revoked_keys(const Key<PluginTrust> &, const KeyValue &input, PluginTrust &trust) {
  read_list(
      input, kRevokedKeys,
      "a minisign public key or the ID of one, which has 16 hexadecimal digits",
      [](const std::string &text) -> std::optional<std::string> {
        if (text.size() == kKeyIdDigits && bh::is_lower_hex(bh::lowered(text)))
          return uppered(text);
        std::string id = key_id(text);
        if (id.empty()) return std::nullopt;
        return id;
      },
      &trust.revoked_keys);
}

void read_revoked_digests(const Key<PluginTrust> &, const KeyValue &input, PluginTrust &trust) {
  read_list(
      input, kRevokedDigests, "a SHA-256 digest, which has 64 hexadecimal digits",
      [](const std::string &text) -> std::optional<std::string> {
        std::string digest = bh::lowered(text);
        if (digest.size() != kDigestDigits || !bh::is_lower_hex(digest)) return std::nullopt;
        return digest;
      },
      &trust.revoked_digests);
}

constexpr Key<PluginTrust> kTrust[] = {
    custom<PluginTrust>("trusted_keys", read_trusted_keys),
    flag<&PluginTrust::require_signatures>("require_signatures"),
    custom<PluginTrust>("revoked_keys", read_revoked_keys),
    custom<PluginTrust>("revoked_digests", read_revoked_digests),
};

}  // namespace

std::span<const Key<PluginTrust>> plugin_trust_keys() {
  return kTrust;
}

void read_plugin_trust(const Node &table, Context &context) {
  read_keys<PluginTrust>(table, "plugin_trust", kTrust, context.profile.plugin_trust, context);
}

void keep_revocations(const Node &below, Node *layer) {
  const Node *known = below.find("plugin_trust");
  if (known == nullptr) return;
  for (Member &section : layer->members) {
    if (section.name != "plugin_trust") continue;
    for (Member &list : section.value.members) {
      if (list.name != "revoked_keys" && list.name != "revoked_digests") continue;
      const Node *old = known->find(list.name);
      if (old == nullptr || old->kind != Kind::array || list.value.kind != Kind::array) continue;
      list.value.items.insert(list.value.items.begin(), old->items.begin(), old->items.end());
    }
  }
}

}  // namespace bulkhead::profiles
