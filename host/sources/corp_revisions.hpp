// The revisions of signed corporate profiles that this user has seen, used to reject older
// revisions. They are stored in the file corp-revisions in the state folder: a line "ID REVISION
// CURRENT" for each profile, and a line "ID REVISION revoked" for each revision that a catalogue
// has revoked.
//
// This protects against old files that replace new files on their way to this machine. It does not
// restrict a user, who can remove the file; the files written by root do.
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
  // before, or if a catalogue seen before has revoked this revision.
  Result<void> check(const CorpRevision &now) const;
  // Stores each value that is later than the stored value. Returns an error if that fails. Several
  // processes may call this concurrently.
  Result<void> remember(const CorpRevision &now) const;
  // Does the same for the content of a signed catalogue, even if its revision cannot be used.
  Result<void> remember_catalogue(const CorpRevision &now) const;

  std::string file() const { return folder_ + "/corp-revisions"; }

 private:
  struct Seen {
    std::vector<CorpRevision> last;     // one per id
    std::vector<CorpRevision> revoked;  // id and revision
  };
  Result<Seen> read() const;
  Result<void> write(const Seen &seen) const;
  // `change` returns true if it has changed anything. It is called twice.
  template <class Change>
  Result<void> update(const Change &change) const;

  const std::string folder_;
};

}  // namespace bulkhead::program
