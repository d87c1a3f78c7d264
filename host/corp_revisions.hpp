// Which revisions of signed corp profiles this user has seen, so that an older one does not come
// back: corp-revisions in the state folder, a line "ID REVISION CURRENT" each.
//
// What it keeps out is an old file that is put in place of a new one on its way to this machine. A
// user who removes the file is not kept from anything by it; what root has written binds them.
//
// Thread: any; blocks for files.
#pragma once

#include <string>

#include "base/result.hpp"
#include "profile/corp_signature.hpp"

namespace bulkhead::program {

class CorpRevisions {
 public:
  static constexpr std::size_t max_bytes = 64 * 1024;
  static constexpr std::size_t max_ids = 100;

  explicit CorpRevisions(std::string folder) : folder_(std::move(folder)) {}

  // An error when this revision, or the catalogue's current one, comes before one that was seen.
  Result<void> check(const CorpRevision &now) const;
  // Notes what is later than what was seen; an error when it cannot be kept.
  Result<void> remember(const CorpRevision &now) const;

  std::string file() const { return folder_ + "/corp-revisions"; }

 private:
  const std::string folder_;
};

}  // namespace bulkhead::program
