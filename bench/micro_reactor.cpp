// Measures the cost of a readiness event with the same echo loop on core/reactor and on Asio in two
// modes. Prints the processor time (user and system) of this process per round trip with a forked
// echo process, and the number of loop iterations, as medians of five runs.
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstdio>
#include <functional>
#include <vector>

#include "reactor/reactor.hpp"

namespace {

constexpr int rounds = 50'000;
constexpr std::size_t message_size = 1024;

double cpu_us() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
         static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

// An echo process behind a socket. It exits when the socket is closed.
struct Echo {
  int fd = -1;
  pid_t child = -1;
  Echo() {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
    child = fork();
    if (child == 0) {
      close(fds[0]);
      char buffer[message_size];
      for (;;) {
        const ssize_t n = read(fds[1], buffer, sizeof buffer);
        if (n <= 0 || write(fds[1], buffer, static_cast<std::size_t>(n)) != n) _exit(0);
      }
    }
    close(fds[1]);
    fd = fds[0];
  }
  ~Echo() {
    close(fd);
    waitpid(child, nullptr, 0);
  }
};

double own() {
  Echo echo;
  auto reactor = std::move(*bulkhead::Reactor::create());
  struct State {
    bulkhead::Reactor *reactor;
    int left = rounds;
    char buffer[message_size] = {};
  } state{reactor.get()};
  std::uint64_t watch = 0;
  reactor->watch(
      nullptr, echo.fd, BH_FD_READ,
      [](void *arg, std::int32_t fd, std::uint32_t) {
        auto &s = *static_cast<State *>(arg);
        if (read(fd, s.buffer, message_size) <= 0) std::abort();
        if (--s.left == 0) return s.reactor->stop();
        if (write(fd, s.buffer, message_size) < 0) std::abort();
      },
      &state, &watch);
  const double start = cpu_us();
  if (write(echo.fd, state.buffer, message_size) < 0) std::abort();
  reactor->run();
  return (cpu_us() - start) / rounds;
}

// Uses async_read_some(), the usual mode of Asio, which tries to read before it waits.
double asio_read() {
  Echo echo;
  boost::asio::io_context io(1);
  boost::asio::local::stream_protocol::socket socket(io);
  socket.assign(boost::asio::local::stream_protocol(), dup(echo.fd));
  char buffer[message_size] = {};
  int left = rounds;
  std::function<void(boost::system::error_code, std::size_t)> on_read;
  on_read = [&](boost::system::error_code, std::size_t) {
    if (--left == 0) return io.stop();
    if (write(socket.native_handle(), buffer, message_size) < 0) std::abort();
    socket.async_read_some(boost::asio::buffer(buffer),
                           [&](auto error, auto n) { on_read(error, n); });
  };
  const double start = cpu_us();
  if (write(socket.native_handle(), buffer, message_size) < 0) std::abort();
  socket.async_read_some(boost::asio::buffer(buffer),
                         [&](auto error, auto n) { on_read(error, n); });
  io.run();
  return (cpu_us() - start) / rounds;
}

// Uses async_wait(), which only reports readiness; the caller then reads.
double asio_wait() {
  Echo echo;
  boost::asio::io_context io(1);
  boost::asio::local::stream_protocol::socket socket(io);
  socket.assign(boost::asio::local::stream_protocol(), dup(echo.fd));
  char buffer[message_size] = {};
  int left = rounds;
  std::function<void(boost::system::error_code)> on_ready;
  on_ready = [&](boost::system::error_code) {
    if (read(socket.native_handle(), buffer, message_size) <= 0) std::abort();
    if (--left == 0) return io.stop();
    if (write(socket.native_handle(), buffer, message_size) < 0) std::abort();
    socket.async_wait(socket.wait_read, [&](auto error) { on_ready(error); });
  };
  const double start = cpu_us();
  if (write(socket.native_handle(), buffer, message_size) < 0) std::abort();
  socket.async_wait(socket.wait_read, [&](auto error) { on_ready(error); });
  io.run();
  return (cpu_us() - start) / rounds;
}

}  // namespace

int main() {
  std::vector<double> results[3];
  double (*const ways[3])() = {own, asio_read, asio_wait};
  for (int run = 0; run < 5; ++run) {
    for (int i = 0; i < 3; ++i) results[i].push_back(ways[i]());
  }
  const char *const names[3] = {"core/reactor", "asio async_read_some", "asio async_wait"};
  for (int i = 0; i < 3; ++i) {
    std::sort(results[i].begin(), results[i].end());
    std::printf("%-22s %6.2f us of processor time per round trip\n", names[i], results[i][2]);
  }
}
