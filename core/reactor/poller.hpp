// What the event loop waits with: readiness of descriptors, and a wake-up from other threads.
//
// There are two implementations, chosen when the tree is configured (BULKHEAD_ASIO):
// epoll_poller.cpp and asio_poller.cpp. Both are level-triggered: a descriptor that is still ready
// is reported again by the next wait().
//
// Owner: the Reactor. Thread: the loop's, except wake().
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/result.hpp"

namespace bulkhead {

class Poller {
 public:
  // Readiness of one descriptor. `events` are BH_FD_... bits; a hang-up or an error has BH_FD_ERROR
  // and both directions, if they were asked for.
  struct Ready {
    std::uint64_t handle;
    std::uint32_t events;
  };
  // Descriptors reported by one wait().
  static constexpr std::size_t max_ready = 256;

  static Result<std::unique_ptr<Poller>> create();
  ~Poller();
  Poller(const Poller &) = delete;
  Poller &operator=(const Poller &) = delete;

  // `handle` is not 0 and names the descriptor in Ready. BH_E_UNSUPPORTED: the kernel cannot watch
  // descriptors of this kind (a regular file).
  bh_status add(std::uint64_t handle, int fd, std::uint32_t events);
  bh_status modify(std::uint64_t handle, int fd, std::uint32_t events);
  // Before the descriptor is closed. It is not reported afterwards.
  void remove(std::uint64_t handle, int fd) noexcept;

  // Waits until a descriptor is ready, wake() was called, or timeout_ms have passed (-1: without
  // limit), and replaces the content of `ready`. Returns whether anything happened, a wake-up
  // included.
  bool wait(int timeout_ms, std::vector<Ready> &ready);

  // Makes wait() return. Any thread; async-signal-safe.
  void wake() noexcept;

 private:
  struct State;
  explicit Poller(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace bulkhead
