// Verification of a signed corp profile before it is used (docs/corp.md).
//
// Thread: any. No file is accessed.
#pragma once

#include <string>
#include <string_view>

#include "base/result.hpp"

namespace bulkhead {

inline constexpr std::size_t kCatalogueBytes = 2u << 20;

// The texts as they were read.
struct SignedCorp {
  std::string_view payload, payload_signature;      // the profile
  std::string_view catalogue, catalogue_signature;  // JSON
  // Public keys of minisign; lines "id ID" list the accepted profiles.
  std::string_view keys;
  std::string_view payload_file, catalogue_file;  // names, for messages
};

struct CorpRevision {
  std::string id, revision;  // of the payload, and of its entry
  std::string current;       // the catalogue's current revision of this id
  bool deprecated = false;
  bool revoked = false;
};

// The catalogue is signed; the payload is signed, has the hash that the catalogue gives, and its id
// and revision are those of the entry; the entry is not revoked. An error names the failed check
// and ends with "[signature]", "[catalogue]", "[hash]", "[identity]" or "[revoked]". `seen`, if
// given, receives the catalogue's entry for the payload's revision once both signatures are valid,
// even if the payload is rejected afterwards; otherwise its id is empty.
Result<CorpRevision> check_corp(const SignedCorp &given, CorpRevision *seen = nullptr);

}  // namespace bulkhead
