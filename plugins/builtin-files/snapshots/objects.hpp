// Contents of files, each once, named by its hash, whatever the number of snapshots that have it.
// A content shares its blocks with the live file where the file system can (FICLONE), and is a copy
// else; it is never the same inode as a live file.
//
// Thread: any, one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "builtin-files/snapshots/hash.hpp"
#include "builtin-files/workspace.hpp"

namespace builtin_files {

class Objects {
 public:
  // folder: of the store, open; made below it is "objects". False: *problem.
  bool open(int folder, std::string *problem);

  struct Put {
    Hash hash{};
    std::uint64_t added = 0;  // bytes that the store has grown by
    std::string problem;
  };
  // Takes the content of an open file, from its start, at most max_bytes of it (more is a problem).
  Put put(int file, std::uint64_t max_bytes, const std::function<bool()> &stop);

  // Hash of an open file's content, from its start. False: unreadable, or told to stop.
  static bool hash_file(int file, const std::function<bool()> &stop, Hash *out);

  // Copies a content into the empty file `to`, and checks it. False: *problem.
  bool copy_to(const Hash &hash, int to, const std::function<bool()> &stop, std::string *problem);

  // Size of a content; 0 if it is not there. removed: and it is no more.
  std::uint64_t size_of(const Hash &hash) const;
  std::uint64_t remove(const Hash &hash);

  // Removes what `keep` does not know, and what a killed process left. Gives the bytes that stay.
  std::uint64_t sweep(const std::function<bool(const Hash &)> &keep);

  // Brings what was put since the last time to the disk. False: *problem.
  bool sync(std::string *problem);

 private:
  Put put_small(const std::string &bytes);
  Put put_large(int file, std::uint64_t max_bytes, const std::function<bool()> &stop);
  bool clone(int from, int to);
  bool place(int temporary, const std::string &temporary_name, const Hash &hash, Put *put);
  Fd make_temporary(std::string *name);

  Fd folder_;
  std::uint64_t next_temporary_ = 0;
  bool may_clone_ = true;         // until the file system has refused
  std::vector<std::string> new_;  // not on the disk yet, perhaps
};

}  // namespace builtin_files
