// Stores the latest revisions of signed corporate profiles that this user has seen, and rejects
// earlier revisions.
//
// The file corp-revisions in the state directory contains a line "ID REVISION CURRENT" for each
// profile and a line "ID REVISION revoked" for each revision that a catalogue has revoked.
//
// This prevents someone from delivering old files to this machine instead of new ones. It does not
// restrict the user, who can remove the file.
//
// Thread-safe. Blocks for file access.
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
  static constexpr std::size_t max_ids = 100, max_revoked = 200;  // the oldest entries are removed
  static constexpr std::uint64_t lock_wait_ms = 2000;

  explicit CorpRevisions(std::string folder) : folder_(std::move(folder)) {}

  // Returns an error if this revision, or the current revision in its catalogue, is older than one
  // that has been seen before, or if an earlier catalogue revoked this revision.
  Result<void> check(const CorpRevision &now) const;
  // Stores those values of `now` that are later than the stored values. Several processes may call
  // this function concurrently. Returns an error if the values cannot be stored.
  Result<void> remember(const CorpRevision &now) const;
  // Stores what a signed catalogue says about a profile: the profile's current revision, and
  // whether the revision in `now` is revoked. Used even if the profile itself is rejected.
  Result<void> remember_catalogue(const CorpRevision &now) const;

  std::string file() const { return folder_ + "/corp-revisions"; }

 private:
  struct Seen {
    std::vector<CorpRevision> last;     // one entry per profile ID
    std::vector<CorpRevision> revoked;  // profile IDs and revisions
  };
  Result<Seen> read() const;
  Result<void> write(const Seen &seen) const;
  // Calls `change`, which returns true if it has changed anything. If it has, locks the file, reads
  // it again, calls `change` with the new contents, and writes the result.
  template <class Change>
  Result<void> update(const Change &change) const;

  const std::string folder_;
};

}  // namespace bulkhead::program
