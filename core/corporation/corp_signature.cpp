#include "corporation/corp_signature.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "profile/blake3.hpp"
#include "profile/parse.hpp"
#include "profile/revision.hpp"
#include "signing/minisign.hpp"

namespace bulkhead {
namespace profiles {
namespace {

std::unexpected<Error> refuse(std::string_view file, const std::string &why, const char *code) {
  return fail(BH_E_DENIED, std::string(file) + ": " + why + " [" + code + "]");
}

// Parses the text into a table. On failure, returns the parser's first error.
Result<Node> read_tree(std::string_view text, std::string_view file) {
  const std::vector<ProfileLayer> layers{{"corp", std::string(file), std::string(text)}};
  Diagnostics diagnostics(layers);
  Node root(Kind::table, {});
  ParseOptions options;
  if (parse_layer(layers[0], 0, options, &root, diagnostics) && !diagnostics.failed()) return root;
  const std::vector<ProfileError> errors = diagnostics.take_errors();
  return fail(BH_E_INVALID, errors.empty() ? "not readable" : to_string(errors.front()));
}

const std::string *text_of(const Node *table, std::string_view name) {
  const Node *value = table == nullptr ? nullptr : table->find(name);
  return value != nullptr && value->kind == Kind::string ? &value->text : nullptr;
}

// The catalogue entry for one revision.
struct Entry {
  std::string status, hash, current;
};

Result<Entry> find_entry(const Node &catalogue, const SignedCorp &given, const std::string &id,
                         const std::string &revision) {
  const Node *format = catalogue.find("format");
  if (format == nullptr || format->kind != Kind::number || format->text != "1")
    return refuse(given.catalogue_file, "\"format\" must be 1", "catalogue");
  const Node *profiles = catalogue.find("profiles");
  const Node *profile = profiles == nullptr ? nullptr : profiles->find(id);
  if (profile == nullptr)
    return refuse(given.payload_file, "its id \"" + printable(id) + "\" is not in the catalogue",
                  "identity");
  const Node *revisions = profile->find("revisions");
  const Node *entry = revisions == nullptr ? nullptr : revisions->find(revision);
  if (entry == nullptr)
    return refuse(given.payload_file,
                  "its revision \"" + printable(revision) + "\" of \"" + printable(id) +
                      "\" is not in the catalogue",
                  "identity");
  const std::string *status = text_of(entry, "status");
  const std::string *hash = text_of(entry, "hash");
  const std::string *current = text_of(profile, "current_revision");
  if (status == nullptr || hash == nullptr || current == nullptr || !is_revision(*current))
    return refuse(
        given.catalogue_file,
        "\"current_revision\" is required, and so are \"status\" and \"hash\" for each revision",
        "catalogue");
  return Entry{*status, *hash, *current};
}

// Converts the entry without validating it.
CorpRevision revision_of(const Entry &entry, const std::string &id, const std::string &revision) {
  return {id, revision, entry.current, entry.status == "deprecated", entry.status == "revoked"};
}

Result<void> check_entry(const SignedCorp &given, const Entry &entry, const std::string &revision) {
  const std::string hash = "blake3:" + blake3_hex(given.payload);
  if (entry.hash != hash)
    return refuse(
        given.payload_file,
        "its hash " + hash + " does not match the catalogue's hash for revision " + revision,
        "hash");
  if (entry.status == "active" || entry.status == "deprecated") return {};
  if (entry.status == "revoked")
    return refuse(given.payload_file, "revision " + revision + " has been revoked", "revoked");
  return refuse(given.catalogue_file,
                "the status of " + revision + " must be \"active\", \"deprecated\" or \"revoked\"",
                "catalogue");
}

// The content of corp.pub: public keys, and the IDs of the accepted profiles. Without IDs, any
// profile in the catalogue is accepted.
struct Trust {
  std::string keys;
  std::vector<std::string> ids;
};

Result<Trust> read_trust(std::string_view text) {
  static constexpr std::string_view kId = "id ";
  Trust out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(kId)) {
      out.keys.append(line).append("\n");
      continue;
    }
    line.remove_prefix(kId.size());
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_profile_id(line))
      return fail(BH_E_INVALID,
                  "\"id " + printable(std::string(line)) + "\" is not a valid profile id");
    out.ids.emplace_back(line);
  }
  return out;
}

}  // namespace
}  // namespace profiles

Result<CorpRevision> check_corp(const SignedCorp &given, CorpRevision *seen) {
  using namespace profiles;
  if (seen != nullptr) *seen = {};
  const auto trust = read_trust(given.keys);
  if (!trust) return fail(BH_E_DENIED, trust.error().text + " [signature]");
  const auto keys = read_minisign_keys(trust->keys);
  if (!keys) return fail(BH_E_DENIED, keys.error().text + " [signature]");
  if (given.catalogue.size() > kCatalogueBytes)
    return refuse(given.catalogue_file, "larger than 2 MiB", "catalogue");
  const auto listed = verify_minisign(given.catalogue, given.catalogue_signature, *keys);
  if (!listed) return refuse(given.catalogue_file, listed.error().text, "signature");
  const auto payload = verify_minisign(given.payload, given.payload_signature, *keys);
  if (!payload) return refuse(given.payload_file, payload.error().text, "signature");
  // Both signatures are valid, so both files are authentic.
  const auto catalogue = read_tree(given.catalogue, given.catalogue_file);
  if (!catalogue) return fail(BH_E_DENIED, catalogue.error().text);
  const auto profile = read_tree(given.payload, given.payload_file);
  if (!profile) return fail(BH_E_DENIED, profile.error().text);
  const std::string *id = text_of(&*profile, "id");
  const std::string *revision = text_of(&*profile, "revision");
  if (id == nullptr || revision == nullptr || !is_profile_id(*id) || !is_revision(*revision))
    return refuse(given.payload_file,
                  "a signed profile requires an \"id\" (a-z, 0-9, '-') and a \"revision\" "
                  "(YYYY.MMDD.N)",
                  "identity");
  const auto &ids = trust->ids;
  if (!ids.empty() && std::find(ids.begin(), ids.end(), *id) == ids.end())
    return refuse(given.payload_file,
                  "its id is \"" + *id + "\", but this machine accepts \"" + ids.front() + "\"" +
                      (ids.size() > 1 ? " and others" : "") + " (corp.pub)",
                  "identity");
  const auto entry = find_entry(*catalogue, given, *id, *revision);
  if (!entry) return std::unexpected(entry.error());
  CorpRevision out = revision_of(*entry, *id, *revision);
  if (seen != nullptr) *seen = out;
  if (auto fine = check_entry(given, *entry, *revision); !fine)
    return std::unexpected(fine.error());
  return out;
}

}  // namespace bulkhead
