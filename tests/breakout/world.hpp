// Creates the targets of the breakout tests: files, sockets and a confined sibling process.
#pragma once

#include <sys/types.h>

#include <string>

#include "attempts.hpp"
#include "base/owned_fd.hpp"

namespace breakout {

inline constexpr uid_t nobody_uid = 65534;  // owns the targets if root runs the tests

bool is_root();

// Creates the targets. Exits if a target cannot be created, because the tests would prove nothing.
class World {
 public:
  World();
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  const std::string &folder() const { return folder_; }
  const Target &target() const { return target_; }
  bool sibling_lives() const;

  // Returns a listener on a free port of 127.0.0.1.
  static bulkhead::OwnedFd listener();

 private:
  std::string make_file(const std::string &name);

  std::string folder_;
  Target target_;
  bulkhead::OwnedFd tcp_, udp_, service_, abstract_;
};

}  // namespace breakout
