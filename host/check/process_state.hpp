// State that a plugin shares with all other plugins of its process, and that it must not change.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/owned_fd.hpp"

namespace bulkhead::check {

// Reads /proc/self, which is opened before the process is confined. Used on one thread.
class ProcessView {
 public:
  ProcessView();

  // The descriptors of this process, and its number of threads.
  std::set<int> descriptors() const;
  // What a descriptor refers to, such as a path or "socket:[4711]".
  std::string target(int fd) const;
  std::size_t threads() const;

 private:
  OwnedFd descriptors_, threads_;
};

struct ProcessState {
  std::array<struct sigaction, 65> actions{};
  sigset_t mask{};
  std::vector<std::string> environment;
  std::string folder, locale;
  mode_t umask = 0;
};
ProcessState process_state();

// Returns what differs, such as "the handler of SIGINT", or an empty string.
std::string difference(const ProcessState &before, const ProcessState &after);

// Returns the number of bytes that are allocated with malloc.
std::uint64_t allocated_bytes();

}  // namespace bulkhead::check
