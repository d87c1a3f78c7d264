// Waits for events on behalf of the event loop: readiness of descriptors, and wake-ups from other
// threads.
//
// There are two implementations, selected when the build is configured (BULKHEAD_ASIO):
// epoll_poller.cpp and asio_poller.cpp. Both are level-triggered: a descriptor that is still ready
// is reported again by the next wait().
//
// Owner: the Reactor. Runs on the reactor thread, except wake().
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

class Poller {
 public:
  // A descriptor's readiness. `events` contains BH_FD_... bits. A hang-up or an error sets
  // BH_FD_ERROR and each requested direction.
  struct Ready {
    std::uint64_t handle;
    std::uint32_t events;
  };
  // Maximum number of descriptors reported by one wait().
  static constexpr std::size_t max_ready = 256;

  static Result<std::unique_ptr<Poller>> create();
  ~Poller();
  Poller(const Poller &) = delete;
  Poller &operator=(const Poller &) = delete;

  // `handle` identifies the descriptor in Ready and must not be 0. Returns BH_E_UNSUPPORTED if the
  // kernel cannot watch this type of descriptor (a regular file).
  bh_status add(std::uint64_t handle, int fd, std::uint32_t events);
  bh_status modify(std::uint64_t handle, int fd, std::uint32_t events);
  // Must be called before the descriptor is closed. The descriptor is not reported afterwards.
  void remove(std::uint64_t handle, int fd) noexcept;

  // Waits until a descriptor is ready, wake() is called, or timeout_ms has passed (-1: no limit),
  // and replaces the contents of `ready`. Returns true if a descriptor was ready or wake() was
  // called.
  bool wait(int timeout_ms, std::vector<Ready> &ready);

  // Makes wait() return. Thread-safe and async-signal-safe.
  void wake() noexcept;

 private:
  struct State;
  explicit Poller(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace bulkhead
