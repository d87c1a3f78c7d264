// What a person on this machine has approved of project files (see layers/project.hpp).
//
// A folder with two files, all ours and closed to others: "servers.json" with the approvals, "key"
// with 32 random bytes. Each approval is sealed with the key (HMAC-SHA-256), so that one which was
// edited by hand, or came from elsewhere, counts for nothing. Who can read the key, which is every
// program of this user, can approve; this keeps out accidents, copied files, and programs that can
// only write.
//
// Thread: any; every function reads or writes the files anew.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

struct Approval {
  std::string file;                   // absolute path of the project file
  std::string server;                 // its name there
  std::string digest;                 // ProjectEntry::digest
  std::uint64_t approved_at = 0;      // seconds since 1970
  std::vector<std::string> tools;     // what it offered when it was looked at; may be empty
  std::vector<std::string> findings;  // what its descriptions try: "TOOL: ID"
};

class ApprovalStore {
 public:
  static constexpr std::size_t max_bytes = 4u << 20;  // of servers.json

  struct Content {
    std::vector<Approval> approvals;  // only those whose seal is right
    std::string problem;              // why some, or all, do not count; empty: nothing wrong
  };

  // The user's own: approvals/ in default_state_dir(). It does not depend on the profile.
  ApprovalStore();
  explicit ApprovalStore(std::string folder) : folder_(std::move(folder)) {}

  // Nothing is made or changed. A file that is not ours or open to others counts for nothing.
  Content read() const;
  // Digests of approved servers of this file. Adds to *problem, if there is one.
  std::set<std::string, std::less<>> digests(std::string_view file, std::string *problem) const;

  // Replaces the approval of the same file and server. What does not count goes.
  Result<void> put(Approval approval) const;
  // The number of approvals removed. `server` empty: all of the file; `file` empty: of every file.
  Result<std::size_t> remove(std::string_view file, std::string_view server) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  template <class Change>
  Result<void> update(Change change) const;

  std::string folder_;
};

}  // namespace bulkhead::program
