// The user's approvals of servers in project files (see profile/project.hpp).
//
// The store is a folder with two files that belong to the user and are not accessible to others:
// "servers.json" with the approvals, and "key" with 32 random bytes. Each approval is sealed with
// the key (HMAC-SHA-256), so an approval that was edited by hand or copied from elsewhere is
// ignored. Every program of this user can read the key and therefore create approvals. The seal
// protects against accidents, copied files, and programs that can only write.
//
// Thread-safe. Every function accesses the files.
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
  std::string server;                 // the server's name in that file
  std::string digest;                 // ProjectEntry::digest
  std::uint64_t approved_at = 0;      // seconds since 1970
  std::vector<std::string> tools;     // tools offered during the review; may be empty
  std::vector<std::string> findings;  // findings in its tool descriptions: "TOOL: ID"
};

class ApprovalStore {
 public:
  static constexpr std::size_t max_bytes = 4u << 20;  // size limit of servers.json

  struct Content {
    std::vector<Approval> approvals;  // only approvals with a valid seal
    std::string problem;              // why approvals are ignored; empty if none are
  };

  // The user's store: approvals/ in default_state_dir(), independent of the profile.
  ApprovalStore();
  explicit ApprovalStore(std::string folder) : folder_(std::move(folder)) {}

  // Reads the approvals and changes nothing on disk. A file that belongs to another user or is
  // accessible to others is ignored.
  Content read() const;
  // Returns the digests of the approved servers of this file. Adds any problem to *problem.
  std::set<std::string, std::less<>> digests(std::string_view file, std::string *problem) const;

  // Replaces the approval of the same file and server, and removes invalid approvals.
  Result<void> put(Approval approval) const;
  // Returns the number of removed approvals. If `server` is empty, removes all servers of the file;
  // if `file` is empty, all files.
  Result<std::size_t> remove(std::string_view file, std::string_view server) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  template <class Change>
  Result<void> update(Change change) const;

  std::string folder_;
};

}  // namespace bulkhead::program
