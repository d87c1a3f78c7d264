// The service socket's file: bound and listening, 0600 in a 0700 folder, gone with this object.
// Whoever accepts from it, and however often that is started again, the queue stays.
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
  static constexpr int backlog = 64;  // connections that nobody has accepted yet

  // At `path`, which must not exist; its folder must.
  static Result<std::unique_ptr<ServiceSocket>> open(std::string path);
  // In the first of these folders that can be used, under a name that no other process has.
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
