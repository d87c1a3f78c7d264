// Implements Poller with Boost.Asio's io_context (BULKHEAD_ASIO=ON).
//
// io_context is edge-triggered, and each wait completes after one event. The wait must then be
// restarted, which costs one epoll_ctl. Checking for more ready descriptors costs another
// epoll_wait. Timers and posted functions are not implemented with io_context: wake() must be
// async-signal-safe, and the Reactor guarantees a certain order within each iteration of the event
// loop.
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <boost/asio/bind_allocator.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <new>
#include <string>
#include <unordered_map>

#include "bulkhead/abi/host.h"
#include "bulkhead/cpp/text.hpp"
#include "reactor/poller.hpp"

namespace bulkhead {
namespace {

namespace asio = boost::asio;

// Memory for one wait on one descriptor, so that a wait does not allocate memory.
class WaitMemory {
 public:
  void *allocate(std::size_t size) {
    if (used_ || size > sizeof bytes_) return ::operator new(size);
    used_ = true;
    return bytes_;
  }
  void deallocate(void *p) noexcept {
    if (p == bytes_) {
      used_ = false;
    } else {
      ::operator delete(p);
    }
  }

 private:
  alignas(std::max_align_t) std::byte bytes_[192];
  bool used_ = false;
};

template <class T>
struct WaitAllocator {
  using value_type = T;
  WaitMemory *memory;
  explicit WaitAllocator(WaitMemory *from) noexcept : memory(from) {}
  template <class U>
  WaitAllocator(const WaitAllocator<U> &other) noexcept : memory(other.memory) {}
  T *allocate(std::size_t n) { return static_cast<T *>(memory->allocate(n * sizeof(T))); }
  void deallocate(T *p, std::size_t) noexcept { memory->deallocate(p); }
  friend bool operator==(const WaitAllocator &a, const WaitAllocator &b) noexcept {
    return a.memory == b.memory;
  }
};

using Descriptor = asio::posix::stream_descriptor;

constexpr std::array<std::uint32_t, 3> bits = {BH_FD_READ, BH_FD_WRITE, BH_FD_ERROR};
constexpr std::array<Descriptor::wait_type, 3> waits = {
    Descriptor::wait_read, Descriptor::wait_write, Descriptor::wait_error};

}  // namespace

struct Poller::State {
  struct Watched {
    std::uint64_t handle;
    Descriptor descriptor;
    std::uint32_t wanted = 0;   // BH_FD_... bits; always includes BH_FD_ERROR
    std::uint32_t pending = 0;  // waits that are pending in io_context
    std::uint32_t ready = 0;
    bool removed = false;
    std::array<WaitMemory, 3> memory;
    Watched(std::uint64_t h, asio::io_context &io) : handle(h), descriptor(io) {}
  };

  // Used on one thread; no other thread posts to this io_context.
  asio::io_context io{BOOST_ASIO_CONCURRENCY_HINT_UNSAFE};
  std::unordered_map<std::uint64_t, std::unique_ptr<Watched>> watched;
  std::vector<std::unique_ptr<Watched>> removed;  // kept until io_context has completed their waits
  std::vector<Watched *> reported;                // descriptors that the last wait() reported
  int event_fd = -1;
  Watched *wakeup = nullptr;

  ~State() {
    for (auto &[handle, w] : watched) w->descriptor.release();
    for (auto &w : removed) {
      if (w->descriptor.is_open()) w->descriptor.release();
    }
    io.poll();  // completes the waits before their memory is freed
    watched.clear();
    removed.clear();
    if (event_fd >= 0) ::close(event_fd);
  }

  void on_ready(Watched &w, std::size_t kind) {
    w.pending &= ~bits[kind];
    if (w.removed) return;
    if (w.ready == 0) reported.push_back(&w);
    w.ready |= bits[kind];
  }

  void arm(Watched &w) {
    for (std::size_t kind = 0; kind < bits.size(); ++kind) {
      if ((w.wanted & bits[kind] & ~w.pending) == 0) continue;
      w.pending |= bits[kind];
      w.descriptor.async_wait(
          waits[kind],
          asio::bind_allocator(WaitAllocator<std::byte>(&w.memory[kind]),
                               [this, &w, kind](const boost::system::error_code &error) {
                                 if (error != asio::error::operation_aborted) {
                                   on_ready(w, kind);
                                 } else {
                                   w.pending &= ~bits[kind];
                                 }
                               }));
    }
  }

  // Restarts the waits for descriptors that the last wait() reported and that are still watched.
  void arm_reported() {
    for (Watched *w : reported) {
      w->ready = 0;
      arm(*w);
    }
    reported.clear();
    std::erase_if(removed, [](const auto &w) { return w->pending == 0; });
  }
};

Poller::Poller(std::unique_ptr<State> state) : state_(std::move(state)) {}
Poller::~Poller() = default;

Result<std::unique_ptr<Poller>> Poller::create() {
  auto state = std::make_unique<State>();
  state->event_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (state->event_fd < 0) {
    return fail(BH_E_IO, "cannot create the event loop: " + bh::error_name(errno));
  }
  auto poller = std::unique_ptr<Poller>(new Poller(std::move(state)));
  if (poller->add(0, poller->state_->event_fd, BH_FD_READ) != BH_OK) {
    return fail(BH_E_IO, "cannot create the event loop: the kernel cannot watch its eventfd");
  }
  return poller;
}

bh_status Poller::add(std::uint64_t handle, int fd, std::uint32_t events) {
  struct stat about{};
  if (::fstat(fd, &about) != 0) return BH_E_IO;
  if (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) return BH_E_UNSUPPORTED;
  auto w = std::make_unique<State::Watched>(handle, state_->io);
  boost::system::error_code error;
  w->descriptor.assign(fd, error);
  if (error) return BH_E_IO;
  w->wanted = events | BH_FD_ERROR;
  state_->arm(*w);
  state_->watched[handle] = std::move(w);
  return BH_OK;
}

bh_status Poller::modify(std::uint64_t handle, int /*fd*/, std::uint32_t events) {
  const auto it = state_->watched.find(handle);
  if (it == state_->watched.end()) return BH_E_IO;
  // If a wait is pending for an event that is no longer wanted, the wait is not cancelled. Instead,
  // wait() ignores the event.
  it->second->wanted = events | BH_FD_ERROR;
  if (it->second->ready == 0) state_->arm(*it->second);
  return BH_OK;
}

void Poller::remove(std::uint64_t handle, int /*fd*/) noexcept {
  const auto it = state_->watched.find(handle);
  if (it == state_->watched.end()) return;
  std::unique_ptr<State::Watched> w = std::move(it->second);
  state_->watched.erase(it);
  w->removed = true;
  std::erase(state_->reported, w.get());
  w->descriptor.release();
  state_->removed.push_back(std::move(w));
}

bool Poller::wait(int timeout_ms, std::vector<Ready> &ready) {
  State &s = *state_;
  ready.clear();
  s.arm_reported();
  s.io.restart();
  std::size_t ran;
  if (timeout_ms < 0) {
    ran = s.io.run_one();
  } else if (timeout_ms == 0) {
    ran = s.io.poll_one();
  } else {
    ran = s.io.run_one_for(std::chrono::milliseconds(timeout_ms));
  }
  if (ran == 0) return false;
  while (s.reported.size() < max_ready && s.io.poll_one() > 0) {
  }
  for (const State::Watched *w : s.reported) {
    if (w->handle == 0) {
      std::uint64_t value;
      [[maybe_unused]] const auto got = ::read(s.event_fd, &value, sizeof value);
      continue;
    }
    const std::uint32_t error = w->ready & BH_FD_ERROR;
    const std::uint32_t events = error != 0 ? w->wanted : w->ready & w->wanted;
    if (events != 0) ready.push_back({w->handle, events});
  }
  return !s.reported.empty();
}

void Poller::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(state_->event_fd, &one, sizeof one);
}

}  // namespace bulkhead
