// The listening sockets of a trial. They are opened before the process is confined, because a
// confined process cannot open any.
#pragma once

#include <string>

#include "base/owned_fd.hpp"

namespace bulkhead::check {

class TrialListeners {
 public:
  TrialListeners() = default;  // without sockets
  // Opens sockets on free ports of 127.0.0.1 and ::1, and a Unix socket in the folder. A socket
  // that cannot be opened is missing.
  explicit TrialListeners(const std::string &folder);

  // Returns the socket for addresses of this family, or -1. The Unix socket also represents vsock
  // sockets, which not every system has.
  int of(int family) const noexcept;

 private:
  OwnedFd tcp4_, tcp6_, local_;
};

}  // namespace bulkhead::check
