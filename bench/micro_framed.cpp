// Calls per second of the gateway's own `echo` over frames and over HTTP, in turns within one run;
// and how long a call takes that the policy refuses.
//
// Starts the program named by BULKHEAD with both transports and builtin-http, pinned to one
// processor, and calls from another. Each client has a connection of its own and one call under
// way. Arguments: seconds per cell (default 3), repetitions (3). Prints medians: calls per second,
// p50 and p99 of the latency, processor time of the gateway per call; then the goals B40 and B41
// with what was seen.
#include <poll.h>
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

namespace {

using namespace framed;

constexpr int counts[] = {1, 10, 50, 200};
constexpr int blocked_calls = 1000, blocked_warm_up = 100;

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
    if (n <= 0) throw std::runtime_error("the gateway does not answer any more");
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

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Cell median_of(const std::vector<Cell> &cells) {
  const auto of = [&](double Cell::*member) {
    std::vector<double> values;
    for (const Cell &cell : cells) values.push_back(cell.*member);
    return median(std::move(values));
  };
  return {of(&Cell::per_second), of(&Cell::p50_us), of(&Cell::p99_us), of(&Cell::cpu_us)};
}

// ---- refused calls

struct Refusals {
  double median_us = 0, p95_us = 0;
};

// One client, one call after the other.
Refusals refused_calls(const char *program, const Setup &setup, const std::string &folder) {
  const Gateway gateway(program, folder, setup);
  BlockedClient client(gateway);
  std::vector<double> times;
  for (int i = 0; i < blocked_warm_up + blocked_calls; ++i) {
    client.call();
    double us = 0;
    pollfd readable{client.fd(), POLLIN, 0};
    do {
      if (::poll(&readable, 1, 5000) <= 0) die("a blocked call is not answered");
    } while (!client.readable(&us));
    if (i >= blocked_warm_up) times.push_back(us);
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times[times.size() * 95 / 100]};
}

// ---- what is wanted

const char *met(bool yes) {
  return yes ? "met" : "MISSED";
}

void print_goals(const Cell &fifty, const Cell &two_hundred) {
  std::printf("\nB40  50 clients, frames: %.0f calls/s (goal 6,000): %s\n", fifty.per_second,
              met(fifty.per_second >= 6000));
  std::printf("B40  200 clients, frames: %.0f calls/s (goal 8,000), p99 %.2f ms (goal 35): %s\n",
              two_hundred.per_second, two_hundred.p99_us / 1000,
              met(two_hundred.per_second >= 8000 && two_hundred.p99_us <= 35'000));
}

void print_goal(const char *where, const Refusals &seen) {
  std::printf("B41  %d blocked calls, %s: median %.3f ms (goal 0.2), p95 %.3f ms (goal 0.7): %s\n",
              blocked_calls, where, seen.median_us / 1000, seen.p95_us / 1000,
              met(seen.median_us <= 200 && seen.p95_us <= 700));
}

// A folder for a while.
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

using Cells = std::map<std::pair<int, int>, Cell>;  // clients, 0: frames and 1: HTTP

Cells measure_all(const char *program, double seconds, int repetitions) {
  const Folder folder;
  const Gateway gateway(program, folder.path());
  std::map<std::pair<int, int>, std::vector<Cell>> repeated;
  for (int repetition = 0; repetition < repetitions; ++repetition) {
    for (const int count : counts) {
      repeated[{count, 0}].push_back(measure<FramedClient>(gateway, count, seconds));
      repeated[{count, 1}].push_back(measure<HttpClient>(gateway, count, seconds));
    }
  }
  Cells cells;
  for (const auto &[key, each] : repeated) cells[key] = median_of(each);
  return cells;
}

void run(const char *program, double seconds, int repetitions) {
  pin(load_cpu);
  const Cells cells = measure_all(program, seconds, repetitions);
  std::printf("%7s  %-6s  %9s  %8s  %8s  %11s\n", "clients", "path", "calls/s", "p50 us", "p99 us",
              "CPU us/call");
  for (const auto &[key, cell] : cells) {
    std::printf("%7d  %-6s  %9.0f  %8.0f  %8.0f  %11.1f\n", key.first,
                key.second == 0 ? "frames" : "HTTP", cell.per_second, cell.p50_us, cell.p99_us,
                cell.cpu_us);
  }
  print_goals(cells.at({50, 0}), cells.at({200, 0}));
  for (const bool compartments : {false, true}) {
    const Folder folder;
    print_goal(compartments ? "compartments" : "one process",
               refused_calls(program, {compartments, BLOCKING_POLICY}, folder.path()));
  }
}

}  // namespace

int main(int argc, char **argv) {
  const char *program = std::getenv("BULKHEAD");
  if (program == nullptr) {
    std::fprintf(stderr, "set BULKHEAD to the program\n");
    return 2;
  }
  try {
    run(program, argc > 1 ? std::atof(argv[1]) : 3, argc > 2 ? std::atoi(argv[2]) : 3);
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "micro_framed: %s\n", error.what());
    return 1;
  }
}
