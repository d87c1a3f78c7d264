// The revisions of signed corporate profiles that this user has seen. Older revisions are rejected.
// They are stored in the file corp-revisions in the state folder: a line "ID REVISION CURRENT" for
// each profile, and a line "ID REVISION revoked" for each revision that a catalogue has revoked.
//
// This protects against old files that are delivered to this machine in place of new files. It does
// not restrict the user, who can remove the file; the files written by root do.
//
// Thread-safe; blocks for file access.
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
  static constexpr std::size_t max_ids = 100, max_revoked = 200;  // the oldest are removed
  static constexpr std::uint64_t lock_wait_ms = 2000;

  explicit CorpRevisions(std::string folder) : folder_(std::move(folder)) {}

  // Returns an error if this revision, or the catalogue's current revision, is older than one seen
  // before, or if an earlier catalogue revoked this revision.
  Result<void> check(const CorpRevision &now) const;
  // Stores each value that is later than the stored one. Returns an error if storing fails. Several
  // processes may call this concurrently.
  Result<void> remember(const CorpRevision &now) const;
  // Like remember(), for the content of a signed catalogue whose profile may be unusable.
  Result<void> remember_catalogue(const CorpRevision &now) const;

  std::string file() const { return folder_ + "/corp-revisions"; }

 private:
  struct Seen {
    std::vector<CorpRevision> last;     // one per id
    std::vector<CorpRevision> revoked;  // id and revision
  };
  Result<Seen> read() const;
  Result<void> write(const Seen &seen) const;
  // `change` returns true if it has changed anything; it is then called again under the lock.
  template <class Change>
  Result<void> update(const Change &change) const;

  const std::string folder_;
};

}  // namespace bulkhead::program
