// Verifies a signed corp profile before it is used (docs/corp.md).
//
// Thread-safe. Does not access files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace bulkhead {

inline constexpr std::size_t kCatalogueBytes = 2u << 20;

// The contents of a signed profile's files.
struct SignedCorp {
  std::string_view payload, payload_signature;      // the profile
  std::string_view catalogue, catalogue_signature;  // JSON
  // Public keys in minisign's format. Lines of the form "id ID" list the accepted profiles; without
  // such lines, any profile in the catalogue is accepted.
  std::string_view keys;
  std::string_view payload_file, catalogue_file;  // file names for error messages
};

struct CorpRevision {
  std::string id, revision;  // of the payload, and of its catalogue entry
  std::string current;       // the revision of this ID that the catalogue marks as current
  bool deprecated = false;
  bool revoked = false;
};

// Verifies that the catalogue and the payload are signed, that the hash, ID and revision of the
// payload match its catalogue entry, that `keys` accepts the ID, and that the entry is not revoked.
// Returns BH_E_DENIED otherwise. The text names the failed check and ends with "[signature]",
// "[catalogue]", "[hash]", "[identity]" or "[revoked]". If a signed file cannot be parsed, the text
// is the parser's.
//
// If both signatures are valid, the ID is accepted, and the catalogue has a complete entry for the
// payload's revision, *seen is set to this entry, even if its hash or status then leads to an
// error. Otherwise, the ID in *seen is empty. `seen` may be null.
Result<CorpRevision> check_corp(const SignedCorp &given, CorpRevision *seen = nullptr);

}  // namespace bulkhead
