// Creates a gateway's service socket, and removes its file when destroyed. The socket has mode 0600
// and is in a directory with mode 0700. The process that accepts its connections can be restarted
// without losing queued connections.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/owned_fd.hpp"
#include "base/result.hpp"

namespace bulkhead::program {

class ServiceSocket {
 public:
  static constexpr int backlog = 64;  // maximum number of connections that wait for accept()

  // Creates the socket at `path`, which must not exist. Its directory must exist.
  static Result<std::unique_ptr<ServiceSocket>> open(std::string path);
  // Creates the socket with a unique name in the first directory where this is possible.
  static Result<std::unique_ptr<ServiceSocket>> open_in(const std::vector<std::string> &folders);
  ~ServiceSocket();
  ServiceSocket(const ServiceSocket &) = delete;
  ServiceSocket &operator=(const ServiceSocket &) = delete;

  int fd() const noexcept { return fd_.get(); }
  const std::string &path() const noexcept { return path_; }

 private:
  ServiceSocket(OwnedFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}

  const OwnedFd fd_;
  const std::string path_;
};

}  // namespace bulkhead::program
