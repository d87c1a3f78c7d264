// Implements Poller with epoll. Watched descriptors stay registered and are level-triggered, so an
// event costs no system call other than epoll_wait.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "bulkhead/abi/host.h"
#include "bulkhead/cpp/text.hpp"
#include "reactor/poller.hpp"

namespace bulkhead {
namespace {

std::uint32_t to_epoll(std::uint32_t events) {
  return ((events & BH_FD_READ) != 0 ? std::uint32_t{EPOLLIN} : 0u) |
         ((events & BH_FD_WRITE) != 0 ? std::uint32_t{EPOLLOUT} : 0u);
}

// A hang-up or an error makes both directions ready. The next read or write then reports the cause.
std::uint32_t from_epoll(std::uint32_t events) {
  std::uint32_t out = 0;
  if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0) out |= BH_FD_READ;
  if ((events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) != 0) out |= BH_FD_WRITE;
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) out |= BH_FD_ERROR;
  return out;
}

}  // namespace

struct Poller::State {
  int epoll_fd = -1;
  int event_fd = -1;

  ~State() {
    if (event_fd >= 0) ::close(event_fd);
    if (epoll_fd >= 0) ::close(epoll_fd);
  }

  bool control(int operation, std::uint64_t handle, int fd, std::uint32_t events) const {
    epoll_event event{};
    event.events = to_epoll(events);
    event.data.u64 = handle;
    return ::epoll_ctl(epoll_fd, operation, fd, &event) == 0;
  }
};

Poller::Poller(std::unique_ptr<State> state) : state_(std::move(state)) {}
Poller::~Poller() = default;

Result<std::unique_ptr<Poller>> Poller::create() {
  auto state = std::make_unique<State>();
  state->epoll_fd = ::epoll_create1(EPOLL_CLOEXEC);
  state->event_fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (state->epoll_fd < 0 || state->event_fd < 0 ||
      !state->control(EPOLL_CTL_ADD, 0, state->event_fd, BH_FD_READ)) {
    return fail(BH_E_IO, "cannot create the event loop: " + bh::error_name(errno));
  }
  return std::unique_ptr<Poller>(new Poller(std::move(state)));
}

bh_status Poller::add(std::uint64_t handle, int fd, std::uint32_t events) {
  if (state_->control(EPOLL_CTL_ADD, handle, fd, events)) return BH_OK;
  return errno == EPERM ? BH_E_UNSUPPORTED : BH_E_IO;  // EPERM: a regular file or a folder
}

bh_status Poller::modify(std::uint64_t handle, int fd, std::uint32_t events) {
  return state_->control(EPOLL_CTL_MOD, handle, fd, events) ? BH_OK : BH_E_IO;
}

void Poller::remove(std::uint64_t /*handle*/, int fd) noexcept {
  ::epoll_ctl(state_->epoll_fd, EPOLL_CTL_DEL, fd, nullptr);
}

bool Poller::wait(int timeout_ms, std::vector<Ready> &ready) {
  ready.clear();
  std::array<epoll_event, max_ready> events;
  const int n = ::epoll_wait(state_->epoll_fd, events.data(), events.size(), timeout_ms);
  for (int i = 0; i < n; ++i) {
    const epoll_event &event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 != 0) {
      ready.push_back({event.data.u64, from_epoll(event.events)});
      continue;
    }
    std::uint64_t value;
    [[maybe_unused]] const auto got = ::read(state_->event_fd, &value, sizeof value);
  }
  return n > 0;
}

void Poller::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto n = ::write(state_->event_fd, &one, sizeof one);
}

}  // namespace bulkhead
