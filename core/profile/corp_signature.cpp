#include "profile/corp_signature.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "profile/blake3.hpp"
#include "profile/minisign.hpp"
#include "profile/parse.hpp"

namespace bulkhead {
namespace profiles {
namespace {

bool digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::unexpected<Error> refuse(std::string_view file, const std::string &why, const char *code) {
  return fail(BH_E_DENIED, std::string(file) + ": " + why + " [" + code + "]");
}

// The text as a table; an error in the words of the parser.
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

// What the catalogue says of one revision.
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
    return refuse(given.payload_file,
                  "its id is \"" + printable(id) + "\", which the catalogue does not have",
                  "identity");
  const Node *revisions = profile->find("revisions");
  const Node *entry = revisions == nullptr ? nullptr : revisions->find(revision);
  if (entry == nullptr)
    return refuse(given.payload_file,
                  "its revision is \"" + printable(revision) +
                      "\", which the catalogue does not have for \"" + printable(id) + "\"",
                  "identity");
  const std::string *status = text_of(entry, "status");
  const std::string *hash = text_of(entry, "hash");
  const std::string *current = text_of(profile, "current_revision");
  if (status == nullptr || hash == nullptr || current == nullptr || !is_revision(*current))
    return refuse(given.catalogue_file,
                  "\"current_revision\", and of each revision \"status\" and \"hash\", are needed",
                  "catalogue");
  return Entry{*status, *hash, *current};
}

Result<CorpRevision> check_entry(const SignedCorp &given, const Entry &entry, CorpRevision out) {
  const std::string hash = "blake3:" + blake3_hex(given.payload);
  if (entry.hash != hash)
    return refuse(
        given.payload_file,
        "its hash is " + hash + ", and the catalogue has another for revision " + out.revision,
        "hash");
  out.current = entry.current;
  out.deprecated = entry.status == "deprecated";
  if (entry.status == "active" || out.deprecated) return out;
  if (entry.status == "revoked")
    return refuse(given.payload_file, "revision " + out.revision + " is revoked", "revoked");
  return refuse(
      given.catalogue_file,
      "the status of " + out.revision + " is none of \"active\", \"deprecated\" and \"revoked\"",
      "catalogue");
}

}  // namespace
}  // namespace profiles

bool is_revision(std::string_view text) {
  return text.size() >= 11 && text.size() <= 32 && text[4] == '.' && text[9] == '.' &&
         profiles::digits(text.substr(0, 4)) && profiles::digits(text.substr(5, 4)) &&
         profiles::digits(text.substr(10));
}

bool is_profile_id(std::string_view text) {
  return text.size() >= 3 && text.size() <= 64 && text[0] != '-' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string_view::npos;
}

bool comes_before(std::string_view a, std::string_view b) {
  const std::string_view day_a = a.substr(0, 9), day_b = b.substr(0, 9);
  if (day_a != day_b) return day_a < day_b;
  const auto number = [](std::string_view text) {
    text.remove_prefix(10);
    return text.substr(std::min(text.find_first_not_of('0'), text.size()));
  };
  const std::string_view n_a = number(a), n_b = number(b);
  return n_a.size() != n_b.size() ? n_a.size() < n_b.size() : n_a < n_b;
}

Result<CorpRevision> check_corp(const SignedCorp &given) {
  using namespace profiles;
  const auto keys = read_minisign_keys(given.keys);
  if (!keys) return fail(BH_E_DENIED, keys.error().text + " [signature]");
  if (given.catalogue.size() > kCatalogueBytes)
    return refuse(given.catalogue_file, "larger than 2 MiB", "catalogue");
  const auto listed = verify_minisign(given.catalogue, given.catalogue_signature, *keys);
  if (!listed) return refuse(given.catalogue_file, listed.error().text, "signature");
  const auto payload = verify_minisign(given.payload, given.payload_signature, *keys);
  if (!payload) return refuse(given.payload_file, payload.error().text, "signature");
  // From here on both are the administrator's words.
  const auto catalogue = read_tree(given.catalogue, given.catalogue_file);
  if (!catalogue) return fail(BH_E_DENIED, catalogue.error().text);
  const auto profile = read_tree(given.payload, given.payload_file);
  if (!profile) return fail(BH_E_DENIED, profile.error().text);
  const std::string *id = text_of(&*profile, "id");
  const std::string *revision = text_of(&*profile, "revision");
  if (id == nullptr || revision == nullptr || !is_profile_id(*id) || !is_revision(*revision))
    return refuse(given.payload_file,
                  "a signed profile needs an \"id\" (a-z, 0-9, '-') and a \"revision\" "
                  "(YYYY.MMDD.N)",
                  "identity");
  const auto entry = find_entry(*catalogue, given, *id, *revision);
  if (!entry) return std::unexpected(entry.error());
  return check_entry(given, *entry, {*id, *revision, {}, false});
}

}  // namespace bulkhead
