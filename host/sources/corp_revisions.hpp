// Which revisions of signed corp profiles this user has seen, so that an older one does not come
// back: corp-revisions in the state folder, a line "ID REVISION CURRENT" each, and a line "ID
// REVISION revoked" for what a catalogue has revoked.
//
// What it keeps out is an old file that is put in place of a new one on its way to this machine. A
// user who removes the file is not kept from anything by it; what root has written binds them.
//
// Thread: any; blocks for files.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "corporation/corp_signature.hpp"

namespace bulkhead::program {

class CorpRevisions {
 public:
  static constexpr std::size_t max_bytes = 64 * 1024;
  static constexpr std::size_t max_ids = 100, max_revoked = 200;  // the oldest give way
  static constexpr std::uint64_t lock_wait_ms = 2000;

  explicit CorpRevisions(std::string folder) : folder_(std::move(folder)) {}

  // An error when this revision, or the catalogue's current one, comes before one that was seen, or
  // a catalogue that was seen has revoked it.
  Result<void> check(const CorpRevision &now) const;
  // Notes of each what is later than what was seen; an error when it cannot be kept. Several
  // processes may do so at once.
  Result<void> remember(const CorpRevision &now) const;
  // The same of what a signed catalogue says, whether its revision can be used or not.
  Result<void> remember_catalogue(const CorpRevision &now) const;

  std::string file() const { return folder_ + "/corp-revisions"; }

 private:
  struct Seen {
    std::vector<CorpRevision> last;     // one for each id
    std::vector<CorpRevision> revoked;  // id and revision
  };
  Result<Seen> read() const;
  Result<void> write(const Seen &seen) const;
  // `change` says whether it has changed anything, and does so twice.
  template <class Change>
  Result<void> update(const Change &change) const;

  const std::string folder_;
};

}  // namespace bulkhead::program
