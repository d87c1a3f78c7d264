#include "sources/corp_profile.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "common/paths.hpp"
#include "common/trusted_file.hpp"
#include "corporation/corp_signature.hpp"
#include "signing/minisign.hpp"
#include "sources/corp_revisions.hpp"

namespace bulkhead::program {
namespace {

using Lines = std::vector<std::string>;

constexpr char system_folder[] = "/etc/bulkhead";
constexpr char test_variable[] = "BULKHEAD_CORP_PROFILE";

// Also returns true if the path cannot be examined. The error is reported when the file is read.
bool exists(const std::string &path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

// The directory and file name of the profile, and its permitted owners.
struct Place {
  std::string folder, name;
  std::vector<uid_t> owners;
  std::string at(const std::string &file) const { return folder + "/" + file; }
};

std::optional<Place> find_profile() {
  const Place system{system_folder, "corp.toml", {0}};
  // If there is a key, there must also be a profile. If the profile is missing, the error is
  // reported when it is read.
  if (exists(system.at(system.name)) || exists(system.at("corp.pub"))) return system;
  const char *named = std::getenv(test_variable);
  if (named == nullptr || *named == '\0') return std::nullopt;
  const std::string path = named;
  const std::size_t slash = path.rfind('/');
  // This is a relative path, which is rejected later.
  if (slash == std::string::npos) return Place{".", path, {0}};
  return Place{path.substr(0, slash), path.substr(slash + 1), {0, ::geteuid()}};
}

// The contents of the files that accompany a signed profile.
struct Texts {
  std::string keys, catalogue, catalogue_signature, signature;
};

Result<Texts> read_signature(const Place &place) {
  Texts out;
  const struct {
    std::string file;
    std::string *text;
    std::size_t most;
  } files[] = {{"corp.pub", &out.keys, kMinisignBytes},
               {place.name + ".minisig", &out.signature, kMinisignBytes},
               {"catalogue.json", &out.catalogue, kCatalogueBytes},
               {"catalogue.json.minisig", &out.catalogue_signature, kMinisignBytes}};
  for (const auto &[file, text, most] : files) {
    auto read = read_trusted(place.at(file), place.owners, most);
    if (!read) {
      return fail(read.error().code,
                  read.error().text + " (corp.pub exists, so the profile must be signed)");
    }
    *text = *std::move(read);
  }
  return out;
}

// Checks the profile's signature, and checks that its revision is not older than any revision seen
// before.
Result<CorpRevision> check_signature(const Place &place, const std::string &payload, Lines *notes) {
  const auto texts = read_signature(place);
  if (!texts) return std::unexpected(texts.error());
  const std::string file = place.at(place.name), catalogue = place.at("catalogue.json");
  const CorpRevisions known(default_state_dir());
  CorpRevision seen;
  const auto revision = check_corp({payload, texts->signature, texts->catalogue,
                                    texts->catalogue_signature, texts->keys, file, catalogue},
                                   &seen);
  Result<void> fine;
  if (!revision) fine = std::unexpected(revision.error());
  if (fine) fine = known.check(*revision);
  // The catalogue's data is stored even if the catalogue rejects the profile. Otherwise, the same
  // revision could be accepted later together with an older catalogue.
  if (!seen.id.empty()) {
    if (auto kept = known.remember_catalogue(seen); !kept) {
      notes->push_back("cannot store the state of the corporation's catalogue: " +
                       kept.error().text);
    }
  }
  if (!fine) return std::unexpected(fine.error());
  if (revision->deprecated) {
    notes->push_back("DEPRECATED: revision " + revision->revision +
                     " of the corporation's profile \"" + revision->id +
                     "\" should be replaced; the current revision is " + revision->current);
  }
  return *revision;
}

std::unexpected<Lines> refuse(std::string why) {
  return std::unexpected(Lines{"the corporation's profile: " + std::move(why)});
}

}  // namespace

std::expected<std::optional<CorpProfile>, Lines> read_corp_profile() {
  const std::optional<Place> place = find_profile();
  if (!place) return std::nullopt;
  const std::string file = place->at(place->name);
  auto text = read_trusted(file, place->owners, kProfileBytes);
  if (!text) return refuse(text.error().text);
  CorpProfile out;
  if (place->folder != system_folder) {
    out.notes.push_back("the corporation's profile is " + tilde(file) + ", set by " +
                        test_variable);
  }
  if (exists(place->at("corp.pub"))) {
    auto revision = check_signature(*place, *text, &out.notes);
    if (!revision) return refuse(revision.error().text);
    out.revision = *std::move(revision);
  }
  out.layer = {"corp", file, *std::move(text)};
  out.layer.corp = true;
  return out;
}

void remember_corp_revision(const std::optional<CorpRevision> &revision, Lines *notes) {
  if (!revision) return;
  if (auto kept = CorpRevisions(default_state_dir()).remember(*revision); !kept) {
    notes->push_back("cannot store the revision of the corporation's profile: " +
                     kept.error().text);
  }
}

}  // namespace bulkhead::program
