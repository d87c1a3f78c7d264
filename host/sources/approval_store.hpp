// Stores the user's approvals of servers that are defined in project files (see
// profile/project.hpp).
//
// The store is a directory with private files: "servers.json" contains the approvals, "key"
// contains 32 random bytes, and "lock" serializes updates. Each approval has a seal, which is an
// HMAC-SHA-256 under this key. If an approval was edited by hand or copied from another machine,
// its seal is invalid and the approval is ignored.
//
// The seal protects against accidents, copied files, and programs that can only write files. It
// does not protect against a program that runs as the same user and can read the key.
//
// Thread-safe. Every function accesses the disk.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace bulkhead::program {

struct Approval {
  std::string file;                // absolute path of the project file
  std::string server;              // the server's name in the project file
  std::string digest;              // ProjectEntry::digest
  std::uint64_t approved_at = 0;   // seconds since 1970
  std::vector<std::string> tools;  // tools that the server listed during the review; may be empty
  std::vector<std::string> findings;  // suspicious tool descriptions, as "TOOL: ID"
};

class ApprovalStore {
 public:
  static constexpr std::size_t max_bytes = 4u << 20;  // size limit of servers.json

  struct Content {
    std::vector<Approval> approvals;  // approvals with a valid seal
    std::string problem;              // why approvals were ignored; empty if none were ignored
  };

  // Opens the user's store, which is approvals/ in default_state_dir(). The store is the same for
  // all profiles.
  ApprovalStore();
  explicit ApprovalStore(std::string folder) : folder_(std::move(folder)) {}

  // Returns the approvals without changing anything on disk. Ignores files that belong to another
  // user or are accessible to others.
  Content read() const;
  // Returns the digests of a project file's approved servers. If any approvals were ignored,
  // *problem is set to the reason.
  std::set<std::string, std::less<>> digests(std::string_view file, std::string *problem) const;

  // Adds an approval and replaces any existing approval for the same file and server. Also removes
  // approvals with an invalid seal.
  Result<void> put(Approval approval) const;
  // Removes approvals and returns how many were removed. An empty `server` matches all servers in
  // the file; an empty `file` matches all files.
  Result<std::size_t> remove(std::string_view file, std::string_view server) const;

  const std::string &folder() const noexcept { return folder_; }

 private:
  template <class Change>
  Result<void> update(Change change) const;

  std::string folder_;
};

}  // namespace bulkhead::program
