// Control groups for servers. They limit resources that per-process limits cannot: the number of
// processes of root, and memory that belongs to no single process (shared memory, files in a
// tmpfs). Used if this user may create groups (cgroups(7)), in version 1 or 2.
//
// This process has one folder that contains one group per server. The folder and the groups are
// removed if possible; remove_leftovers() removes those of processes that have exited. Owner: the
// Spawner. Used on its thread.
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
  // The part of a server's group that is in one hierarchy. It does not exist before enter_group().
  // Paths are relative to `parent`, a folder of this process.
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

  // Detects the available hierarchies; there may be none.
  ServerGroups();
  ~ServerGroups();
  ServerGroups(const ServerGroups &) = delete;
  ServerGroups &operator=(const ServerGroups &) = delete;

  bool counts_processes() const noexcept;
  bool counts_memory() const noexcept;

  // Removes the groups of processes that have exited.
  static void remove_leftovers();

  // Plans the next server's group without creating it. The child creates the group because the
  // kernel serializes all group changes.
  Group plan(const Limits &limits);
  // Removes a group after its last process has exited. If the group is still in use, removal is
  // retried together with the next group.
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
