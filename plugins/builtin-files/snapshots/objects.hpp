// Stores file contents. Each distinct content is stored once for all snapshots, in an object named
// after its hash. An object of more than 1 MiB is a reflink copy of the live file if the file
// system supports FICLONE. All other objects are full copies. Objects never share an inode with a
// live file.
//
// Not thread-safe, but may be used on any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "builtin-files/snapshots/hash.hpp"
#include "builtin-files/workspace.hpp"

namespace builtin_files {

inline constexpr std::string_view stopped = "the call was cancelled or timed out";

class Objects {
 public:
  // Opens the folder "objects" in the store's folder, which is open as `folder`. Creates it if it
  // does not exist. Returns false and sets *problem on failure.
  bool open(int folder, std::string *problem);

  struct Put {
    Hash hash{};
    std::uint64_t added = 0;  // bytes added to the store; 0 if the object already existed
    std::string problem;
  };
  // Stores the content of an open file, which must be positioned at its start. Fails if the content
  // exceeds max_bytes or `stop` returns true.
  Put put(int file, std::uint64_t max_bytes, const std::function<bool()> &stop);

  // Hashes the content of an open file, which must be positioned at its start. Returns false if the
  // file is unreadable or `stop` returns true.
  static bool hash_file(int file, const std::function<bool()> &stop, Hash *out);

  // Copies an object into the empty file `to` and verifies its hash. Returns false and sets
  // *problem on failure.
  bool copy_to(const Hash &hash, int to, const std::function<bool()> &stop, std::string *problem);

  // size_of() and remove() return the size of the object in bytes, or 0 if it does not exist.
  // remove() also deletes the object.
  std::uint64_t size_of(const Hash &hash) const;
  std::uint64_t remove(const Hash &hash);

  // Removes leftover temporary files and all objects for which `keep` returns false. Returns the
  // total size of the remaining objects in bytes.
  std::uint64_t sweep(const std::function<bool(const Hash &)> &keep);

  // Flushes to disk the objects that were stored since the last call. Returns false and sets
  // *problem on failure.
  bool sync(std::string *problem);

 private:
  Put put_small(const std::string &bytes);
  Put put_large(int file, std::uint64_t max_bytes, const std::function<bool()> &stop);
  bool clone(int from, int to);
  bool place(int temporary, const std::string &temporary_name, const Hash &hash, Put *put);
  Fd make_temporary(std::string *name);

  Fd folder_;
  std::uint64_t next_temporary_ = 0;
  bool may_clone_ = true;         // false after a reflink copy has failed
  std::vector<std::string> new_;  // paths of the objects that must be synced
};

}  // namespace builtin_files
