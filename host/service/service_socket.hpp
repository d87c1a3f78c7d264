// The service socket's file: bound and listening, with mode 0600 in a 0700 folder. The destructor
// removes it. The process that accepts connections can be restarted without losing queued
// connections.
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
  static constexpr int backlog = 64;  // the maximum number of connections that wait for accept()

  // Creates the socket at `path`, which must not exist; its folder must exist.
  static Result<std::unique_ptr<ServiceSocket>> open(std::string path);
  // Creates the socket in the first usable folder, under a unique name.
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
