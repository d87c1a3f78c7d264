// The corporation's profile: /etc/bulkhead/corp.toml, writable by root only. See docs/corp.md.
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

// Returns none if there is no profile. If the system has none, BULKHEAD_CORP_PROFILE may name one
// for tests: it can add restrictions for a user but never replace what root has written. Returns an
// error, as lines for the user, if a profile exists and cannot be trusted or read; then nothing may
// start.
//
// Thread: any; blocks for files.
std::expected<std::optional<CorpProfile>, std::vector<std::string>> read_corp_profile();

// Stores the revision after the whole profile was loaded, so that earlier revisions are rejected
// from now on. Adds a note if that fails.
void remember_corp_revision(const std::optional<CorpRevision> &revision,
                            std::vector<std::string> *notes);

}  // namespace bulkhead::program
