// The real targets of the breakout tests: files, sockets, a confined sibling process.
#pragma once

#include <sys/types.h>

#include <string>

#include "attempts.hpp"
#include "base/owned_fd.hpp"

namespace breakout {

inline constexpr uid_t nobody_uid = 65534;  // owner of the targets when running as root

bool is_root();

// Creates the targets. Exits if one cannot be created, since no test would be meaningful.
class World {
 public:
  World();
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  const std::string &folder() const { return folder_; }
  const Target &target() const { return target_; }
  bool sibling_lives() const;

  // Returns a listener on any port of 127.0.0.1.
  static bulkhead::OwnedFd listener();

 private:
  std::string make_file(const std::string &name);

  std::string folder_;
  Target target_;
  bulkhead::OwnedFd tcp_, udp_, service_, abstract_;
};

}  // namespace breakout
