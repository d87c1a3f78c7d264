// Waits until descriptors are ready or another thread wakes up the event loop.
//
// There are two implementations, one of which is selected at build time (BULKHEAD_ASIO):
// epoll_poller.cpp and asio_poller.cpp. Both are level-triggered: if a descriptor is still ready,
// the next wait() reports it again.
//
// Owned by the Reactor. All functions must be called on the reactor thread, except wake().
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

class Poller {
 public:
  // A ready descriptor. `events` contains BH_FD_... bits. After a hang-up or an error, it contains
  // BH_FD_ERROR and all requested directions.
  struct Ready {
    std::uint64_t handle;
    std::uint32_t events;
  };
  // Maximum number of descriptors that one wait() reports.
  static constexpr std::size_t max_ready = 256;

  static Result<std::unique_ptr<Poller>> create();
  ~Poller();
  Poller(const Poller &) = delete;
  Poller &operator=(const Poller &) = delete;

  // `handle` identifies the descriptor in Ready, and must not be 0. Returns BH_E_UNSUPPORTED if the
  // kernel cannot watch this type of descriptor, such as a regular file.
  bh_status add(std::uint64_t handle, int fd, std::uint32_t events);
  bh_status modify(std::uint64_t handle, int fd, std::uint32_t events);
  // Must be called before the descriptor is closed. The descriptor is not reported afterwards.
  void remove(std::uint64_t handle, int fd) noexcept;

  // Waits until a descriptor is ready, wake() is called, a signal is handled, or timeout_ms has
  // passed (-1: no limit). Replaces the contents of `ready`. Returns false if no descriptor is
  // ready and wake() was not called.
  bool wait(int timeout_ms, std::vector<Ready> &ready);

  // Makes wait() return. Thread-safe and async-signal-safe.
  void wake() noexcept;

 private:
  struct State;
  explicit Poller(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace bulkhead
