// Control groups for servers: they bound what limits of a process do not, which is how many
// processes root has, and memory that belongs to no single process (shared, or files in a tmpfs).
// Used where this user may make groups (cgroups(7)), in either version.
//
// One folder is made for this process, and in it one for each server. Both are removed as far as
// the process may; remove_leftovers() takes away what others that have ended could not. Owner and
// thread: the Spawner's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/owned_fd.hpp"

namespace bulkhead {

class ServerGroups {
 public:
  struct Limits {
    std::uint64_t processes = 0, memory_bytes = 0;  // 0: no bound
  };
  // One hierarchy's part of a server's group, which does not exist before enter_group(). Paths lie
  // in `parent`, which is ours.
  struct Part {
    int parent = -1;
    std::string folder, procs;
    std::string processes_file, processes;  // empty: no bound
    std::string memory_file, memory;        // likewise
  };
  struct Group {
    std::string name;  // empty: there is none
    std::vector<Part> parts;
  };

  // Finds out what there is; may find nothing.
  ServerGroups();
  ~ServerGroups();
  ServerGroups(const ServerGroups &) = delete;
  ServerGroups &operator=(const ServerGroups &) = delete;

  bool counts_processes() const noexcept;
  bool counts_memory() const noexcept;

  // Of processes that are no more. Those of running ones stay.
  static void remove_leftovers();

  // The next server's. Nothing is made here: the kernel makes whoever changes groups wait for all
  // who do, so the child does it.
  Group plan(const Limits &limits);
  // After its last process has ended; one that is still in use is tried again with the next.
  void remove(const std::string &name);

 private:
  struct Hierarchy {
    std::string path;  // of our folder
    OwnedFd folder;
    bool unified = false, processes = false, memory = false;
  };
  void use(const std::string &parent, bool unified);

  std::vector<Hierarchy> hierarchies_;
  std::vector<std::string> ended_;
  std::uint64_t next_ = 0;
};

}  // namespace bulkhead
