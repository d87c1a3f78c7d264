// What breakout tests attack, set up for real: files, sockets, a sibling that is confined.
#pragma once

#include <sys/types.h>

#include <string>

#include "attempts.hpp"
#include "base/owned_fd.hpp"

namespace breakout {

inline constexpr uid_t nobody = 65534;  // whose things they are, when root

bool is_root();

// Ends the process if it cannot be set up: then nothing can be tested.
class World {
 public:
  World();
  ~World();
  World(const World &) = delete;
  World &operator=(const World &) = delete;

  const std::string &folder() const { return folder_; }
  const Target &target() const { return target_; }
  bool sibling_lives() const;

  // On 127.0.0.1, any port.
  static bulkhead::OwnedFd listener();

 private:
  std::string make_file(const std::string &name);

  std::string folder_;
  Target target_;
  bulkhead::OwnedFd tcp_, udp_, service_, abstract_;
};

}  // namespace breakout
