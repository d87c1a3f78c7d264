// The corporation's profile: /etc/bulkhead/corp.toml, writable only by root. See docs/corp.md.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "corporation/corp_signature.hpp"
#include "profile/layer.hpp"

namespace bulkhead::program {

struct CorpProfile {
  ProfileLayer layer;                    // "corp"
  std::vector<std::string> notes;        // notes for the operator
  std::optional<CorpRevision> revision;  // of a signed profile
};

// Returns nullopt if there is no profile. If the system has none, BULKHEAD_CORP_PROFILE may name a
// profile for tests: it can restrict a user but never replace a profile written by root. If a
// profile exists but cannot be trusted or read, returns an error, as lines for the user, and the
// program must not start.
//
// Thread-safe; blocks for file access.
std::expected<std::optional<CorpProfile>, std::vector<std::string>> read_corp_profile();

// Stores the revision, so that earlier revisions are rejected. Call it after the whole profile has
// been loaded. Adds a note if storing fails.
void remember_corp_revision(const std::optional<CorpRevision> &revision,
                            std::vector<std::string> *notes);

}  // namespace bulkhead::program
