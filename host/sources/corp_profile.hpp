// Reads the corporate profile, /etc/bulkhead/corp.toml, which is writable only by root. See
// docs/corp.md.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "corporation/corp_signature.hpp"
#include "profile/layer.hpp"

namespace bulkhead::program {

struct CorpProfile {
  ProfileLayer layer;  // the layer "corp"
  std::vector<std::string> notes;
  std::optional<CorpRevision> revision;  // set if the profile is signed
};

// Returns the corporate profile, or nullopt if there is none. If there is a profile but it cannot
// be read or is not trusted, returns error lines for the user, and the program must not start.
//
// If there is no profile in /etc/bulkhead, the environment variable BULKHEAD_CORP_PROFILE may name
// one for tests. Such a profile can impose restrictions on a user, but cannot replace a profile
// that root has written.
//
// Thread-safe. Blocks for file access.
std::expected<std::optional<CorpProfile>, std::vector<std::string>> read_corp_profile();

// Stores the revision, so that earlier revisions are rejected from now on. Call this function after
// the whole profile has been loaded. Adds a note if the revision cannot be stored.
void remember_corp_revision(const std::optional<CorpRevision> &revision,
                            std::vector<std::string> *notes);

}  // namespace bulkhead::program
