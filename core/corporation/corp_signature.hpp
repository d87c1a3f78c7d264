// A signed corp profile: what has to be true of it before a byte of it is used (docs/corp.md).
//
// Thread: any. Nothing here touches files.
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
  // minisign's public keys; lines "id ID" name the profiles that may be this one.
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
// and revision are those of the entry; the entry is not revoked. An error says which of these is
// wrong, with "[signature]", "[catalogue]", "[hash]", "[identity]" or "[revoked]" at its end.
// `seen`, if given, gets what the catalogue says of the payload's revision as soon as both
// signatures hold and there is an entry, also where the payload is refused then; else its id is
// empty.
Result<CorpRevision> check_corp(const SignedCorp &given, CorpRevision *seen = nullptr);

}  // namespace bulkhead
