// The corporation's profile: /etc/bulkhead/corp.toml, which only root can write. docs/corp.md.
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
  std::vector<std::string> notes;        // for the operator
  std::optional<CorpRevision> revision;  // of a signed one
};

// Nothing: there is none. Where the system has none, BULKHEAD_CORP_PROFILE may name one, for tests:
// that can add to what a user is bound by, never replace what root has written. An error, as lines
// for people: there is one, and it cannot be trusted or read; nothing may start then.
//
// Thread: any; blocks for files.
std::expected<std::optional<CorpProfile>, std::vector<std::string>> read_corp_profile();

// Once the whole profile has loaded with it: earlier revisions are not taken from now on. A note
// where that cannot be kept.
void remember_corp_revision(const std::optional<CorpRevision> &revision,
                            std::vector<std::string> *notes);

}  // namespace bulkhead::program
