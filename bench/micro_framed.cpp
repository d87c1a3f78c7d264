// Measures calls per second of the builtin `echo` over frames and over HTTP, alternating in one
// run, and the latency of calls that the policy rejects.
//
// Starts the program in the variable BULKHEAD with both transports and builtin-http on one
// processor, and calls it from another processor. Each client has its own connection and one
// in-flight call. Arguments: seconds per cell (default 3) and repetitions (default 3). Prints the
// medians of calls per second, p50 and p99 latency, and the gateway's processor time per call,
// followed by the goals B40 and B41 with the measured values.
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "framed_measure.hpp"

namespace {

using namespace framed;

constexpr int counts[] = {1, 10, 50, 200};
constexpr int blocked_calls = 1000, blocked_warm_up = 100;

// ---- rejected calls ----------------------------------------------------------------------------

struct Refusals {
  double median_us = 0, p95_us = 0;
};

// Measures a client that makes calls one after another.
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

// ---- goals -------------------------------------------------------------------------------------

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

// key: number of clients, protocol (0: frames, 1: HTTP)
using Cells = std::map<std::pair<int, int>, Cell>;

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
