// Content store: file contents named by their hash, each stored once for all snapshots. A content
// shares blocks with the live file if the file system supports it (FICLONE), and is a copy
// otherwise; it never shares an inode with a live file.
//
// Thread: any, one at a time.
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
  // folder: the open folder of the store, in which "objects" is created. False: *problem.
  bool open(int folder, std::string *problem);

  struct Put {
    Hash hash{};
    std::uint64_t added = 0;  // growth of the store in bytes
    std::string problem;
  };
  // Stores the content of an open file from its start; more than max_bytes is an error.
  Put put(int file, std::uint64_t max_bytes, const std::function<bool()> &stop);

  // Hashes an open file's content from its start. False: unreadable, or stopped.
  static bool hash_file(int file, const std::function<bool()> &stop, Hash *out);

  // Copies a content into the empty file `to` and verifies it. False: *problem.
  bool copy_to(const Hash &hash, int to, const std::function<bool()> &stop, std::string *problem);

  // The size of a content; 0 if it does not exist. remove() also removes it.
  std::uint64_t size_of(const Hash &hash) const;
  std::uint64_t remove(const Hash &hash);

  // Removes contents for which `keep` returns false, and leftovers of killed processes. Returns the
  // remaining bytes.
  std::uint64_t sweep(const std::function<bool(const Hash &)> &keep);

  // Syncs the contents stored since the last call to the disk. False: *problem.
  bool sync(std::string *problem);

 private:
  Put put_small(const std::string &bytes);
  Put put_large(int file, std::uint64_t max_bytes, const std::function<bool()> &stop);
  bool clone(int from, int to);
  bool place(int temporary, const std::string &temporary_name, const Hash &hash, Put *put);
  Fd make_temporary(std::string *name);

  Fd folder_;
  std::uint64_t next_temporary_ = 0;
  bool may_clone_ = true;         // false after the file system has rejected a clone
  std::vector<std::string> new_;  // possibly not on the disk yet
};

}  // namespace builtin_files
