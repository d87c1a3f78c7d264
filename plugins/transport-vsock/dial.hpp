// Opens connections through the host, because a confined gateway cannot connect by itself.
#pragma once

#include <bulkhead/cpp/host.hpp>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "transport-vsock/config.hpp"

namespace transport_vsock {

class Socket {
 public:
  Socket() noexcept = default;
  explicit Socket(int fd) noexcept : fd_(fd) {}
  Socket(Socket &&other) noexcept : fd_(other.release()) {}
  Socket &operator=(Socket &&other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Socket();
  int get() const noexcept { return fd_; }
  int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Called once on the reactor thread, with an error or with a socket that is connected or
// connecting.
using Dialled = std::function<void(Socket socket, const std::string &error)>;

// Declares the address that dial() will use. May be called only inside listen().
bh_status will_dial(const bh::Host &host, const Address &address, bh_error *error);

// Starts a connection attempt on a thread from the host's pool. If *alive is false when the attempt
// finishes, the result is discarded. If dial() itself fails, `done` is not called. Runs on the
// reactor thread.
bh_status dial(const bh::Host &host, const Address &address, std::shared_ptr<const bool> alive,
               Dialled done);

}  // namespace transport_vsock
