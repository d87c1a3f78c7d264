// Verifies a signed corp profile before use (docs/corp.md).
//
// Thread-safe. Does not access files.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace bulkhead {

inline constexpr std::size_t kCatalogueBytes = 2u << 20;

// The texts as read from their files.
struct SignedCorp {
  std::string_view payload, payload_signature;      // the profile
  std::string_view catalogue, catalogue_signature;  // JSON
  // Public keys in minisign's format. Lines "id ID" list the accepted profiles.
  std::string_view keys;
  std::string_view payload_file, catalogue_file;  // for messages
};

struct CorpRevision {
  std::string id, revision;  // of the payload and of its catalogue entry
  std::string current;       // the catalogue's current revision of this id
  bool deprecated = false;
  bool revoked = false;
};

// Verifies that the catalogue and the payload are signed, that the payload's hash, id and revision
// match its catalogue entry, and that the entry is not revoked. An error names the failed check and
// ends with "[signature]", "[catalogue]", "[hash]", "[identity]" or "[revoked]". If `seen` is given
// and both signatures are valid, it is set to the catalogue entry for the payload's revision, even
// if a later check rejects the payload; otherwise its id is left empty.
Result<CorpRevision> check_corp(const SignedCorp &given, CorpRevision *seen = nullptr);

}  // namespace bulkhead
