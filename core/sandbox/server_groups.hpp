// Creates control groups (version 1 or 2) for servers, if this user may create groups (cgroups(7)).
// They limit what per-process limits cannot: the number of processes that run as root, and memory
// that belongs to no single process (shared memory, files in a tmpfs).
//
// This process has one folder in each hierarchy, which contains one group per server. The
// destructor removes the folder and its groups if possible. remove_leftovers() removes the folders
// and groups of processes that have exited. Owner: the Spawner. Must be used on the Spawner's
// thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/owned_fd.hpp"

namespace bulkhead {

class ServerGroups {
 public:
  struct Limits {
    std::uint64_t processes = 0, memory_bytes = 0;  // 0: no limit
  };
  // A server's group in one hierarchy. The group does not exist until the child calls
  // enter_group(). Paths are relative to `parent`, a folder of this process.
  struct Part {
    int parent = -1;
    std::string folder, procs;
    std::string processes_file, processes;  // empty: no limit
    std::string memory_file, memory;        // empty: no limit
  };
  struct Group {
    std::string name;  // empty: no group
    std::vector<Part> parts;
  };

  // Detects the available hierarchies, if any.
  ServerGroups();
  ~ServerGroups();
  ServerGroups(const ServerGroups &) = delete;
  ServerGroups &operator=(const ServerGroups &) = delete;

  bool counts_processes() const noexcept;
  bool counts_memory() const noexcept;

  // Removes groups left behind by gateway processes that have exited.
  static void remove_leftovers();

  // Plans the next server's group. The child itself creates the group, because the kernel
  // serializes all group changes and this thread would otherwise have to wait for them.
  Group plan(const Limits &limits);
  // Removes a group after its last process has exited. If the group is still in use, the next call
  // tries again to remove it.
  void remove(const std::string &name);

 private:
  struct Hierarchy {
    std::string path;  // path of this process's folder
    OwnedFd folder;
    bool unified = false, processes = false, memory = false;
  };
  void use(const std::string &parent, bool unified);

  std::vector<Hierarchy> hierarchies_;
  std::vector<std::string> ended_;
  std::uint64_t next_ = 0;
};

}  // namespace bulkhead
