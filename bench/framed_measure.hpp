// Measures a gateway with many clients, each with one in-flight call: calls per second, latency,
// and the gateway's processor time per call.
#pragma once

#include <sys/epoll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framed_clients.hpp"

namespace framed {

struct Cell {
  double per_second = 0, p50_us = 0, p99_us = 0, cpu_us = 0;
};

template <class C>
Cell measure(const Gateway &gateway, int clients, double seconds) {
  std::map<int, std::unique_ptr<Client>> all;
  const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
  for (int i = 0; i < clients; ++i) {
    auto client = std::make_unique<C>(gateway);
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = client.get();
    ::epoll_ctl(epoll, EPOLL_CTL_ADD, client->fd(), &event);
    all.emplace(client->fd(), std::move(client));
  }
  for (auto &[fd, client] : all) client->call();
  std::vector<double> times;
  const auto begin = Clock::now();
  const std::chrono::duration<double> warm_up(0.3), length(seconds);
  double cpu = 0;
  Clock::time_point from{};
  for (;;) {
    epoll_event events[64];
    const int n = ::epoll_wait(epoll, events, 64, 5000);
    if (n <= 0) throw std::runtime_error("the gateway no longer answers");
    for (int i = 0; i < n; ++i) {
      auto *client = static_cast<Client *>(events[i].data.ptr);
      double us = 0;
      if (!client->readable(&us)) continue;
      if (from != Clock::time_point{}) times.push_back(us);
      client->call();
    }
    const auto now = Clock::now();
    if (from == Clock::time_point{} && now - begin > warm_up) {
      from = now;
      cpu = gateway.cpu_us();
    } else if (from != Clock::time_point{} && now - from > length) {
      break;
    }
  }
  const double took = std::chrono::duration<double>(Clock::now() - from).count();
  ::close(epoll);
  std::sort(times.begin(), times.end());
  const auto count = static_cast<double>(times.size());
  return {count / took, times[times.size() / 2], times[times.size() * 99 / 100],
          (gateway.cpu_us() - cpu) / count};
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

inline Cell median_of(const std::vector<Cell> &cells) {
  const auto of = [&](double Cell::*member) {
    std::vector<double> values;
    for (const Cell &cell : cells) values.push_back(cell.*member);
    return median(std::move(values));
  };
  return {of(&Cell::per_second), of(&Cell::p50_us), of(&Cell::p99_us), of(&Cell::cpu_us)};
}

class Folder {
 public:
  Folder() {
    if (::mkdtemp(path_) == nullptr) die("mkdtemp");
  }
  ~Folder() {
    const std::string remove = std::string("rm -rf ") + path_;
    if (std::system(remove.c_str()) != 0) std::fprintf(stderr, "%s is left\n", path_);
  }
  Folder(const Folder &) = delete;
  Folder &operator=(const Folder &) = delete;
  const char *path() const { return path_; }

 private:
  char path_[32] = "/tmp/bulkhead-framed-XXXXXX";
};

}  // namespace framed
