// Calls per second of the gateway's own `echo` over frames and over HTTP, in turns within one run.
//
// Starts the program named by BULKHEAD (one process) with both transports and builtin-http, pinned
// to one processor, and calls from another. Each client has a connection of its own and one call
// under way. Arguments: seconds per cell (default 3), repetitions (3). Prints medians: calls per
// second, p50 and p99 of the latency, processor time of the gateway per call.
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "mcp-frame/frame.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int load_cpu = 0, gateway_cpu = 1;
constexpr std::size_t message_bytes = 64;
constexpr int counts[] = {1, 10, 50, 200};

[[noreturn]] void die(const std::string &what) {
  throw std::runtime_error(what + (errno != 0 ? std::string(": ") + std::strerror(errno) : ""));
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  ::sched_setaffinity(0, sizeof set, &set);
}

// ---- the gateway
// ---------------------------------------------------------------------------------

class Gateway {
 public:
  Gateway(const char *program, std::string folder) : folder_(std::move(folder)) {
    const std::string config = folder_ + "/gateway.toml";
    std::ofstream(config) << "state_dir = \"" << folder_ << "/state\"\n"
                          << "[transports.frames]\nplugin = \"transport-vsock\"\nlisten = \"unix:"
                          << socket_path() << "\"\nmax_connections_per_peer = 1024\n"
                          << "[transports.http]\nplugin = \"transport-http\"\n"
                          << "listen = \"127.0.0.1:0\"\n"
                          << "[tools.local]\nplugin = \"builtin-http\"\n";
    const std::string out = folder_ + "/out";
    pid_ = ::fork();
    if (pid_ == 0) {
      pin(gateway_cpu);
      const int fd = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      ::dup2(fd, 1);
      ::dup2(fd, 2);
      ::execl(program, program, "serve", "--single-process", "--config", config.c_str(), nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 100 && port_ == 0; ++i) {
      ::usleep(100'000);
      std::ifstream text(out);
      const std::string said((std::istreambuf_iterator<char>(text)), {});
      const std::size_t at = said.find("http://127.0.0.1:");
      if (at != std::string::npos && ::access(socket_path().c_str(), F_OK) == 0) {
        port_ = static_cast<std::uint16_t>(std::strtoul(said.c_str() + at + 17, nullptr, 10));
      } else if (i == 99) {
        throw std::runtime_error("the gateway does not start:\n" + said);
      }
    }
  }
  ~Gateway() {
    ::kill(pid_, SIGTERM);
    ::waitpid(pid_, nullptr, 0);
  }
  Gateway(const Gateway &) = delete;
  Gateway &operator=(const Gateway &) = delete;

  std::string socket_path() const { return folder_ + "/frames.sock"; }
  std::uint16_t port() const { return port_; }
  // User and system time since the start.
  double cpu_us() const {
    std::ifstream file("/proc/" + std::to_string(pid_) + "/stat");
    std::string text((std::istreambuf_iterator<char>(file)), {});
    const char *at = text.c_str() + text.rfind(')');
    for (int field = 2; field < 14; ++field) at = std::strchr(at + 1, ' ');
    char *end = nullptr;
    const double ticks = std::strtod(at, &end) + std::strtod(end, nullptr);
    return ticks * 1e6 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }

 private:
  const std::string folder_;
  pid_t pid_ = -1;
  std::uint16_t port_ = 0;
};

// ---- clients
// -------------------------------------------------------------------------------------

// One connection with one call under way. Each answer is checked for the call's own number.
class Client {
 public:
  explicit Client(int fd) : fd_(fd) {}
  virtual ~Client() { ::close(fd_); }
  Client(const Client &) = delete;
  Client &operator=(const Client &) = delete;

  int fd() const { return fd_; }
  void call() {
    started_ = Clock::now();
    send_text(request(++number_));
  }
  // True: the answer is whole; *us is how long it took.
  bool readable(double *us) {
    char buffer[8192];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) die("the gateway has closed the connection");
    in_.append(buffer, static_cast<std::size_t>(n));
    const std::size_t size = whole(in_);
    if (size == 0) return false;
    if (in_.find(mark(number_)) == std::string::npos) {
      throw std::runtime_error("a wrong answer: " + in_);
    }
    in_.clear();
    *us = std::chrono::duration<double, std::micro>(Clock::now() - started_).count();
    return true;
  }

 protected:
  static std::string mark(std::uint64_t number) { return "call " + std::to_string(number) + " "; }
  static std::string json(std::uint64_t number) {
    const std::string text = mark(number);
    return R"({"jsonrpc":"2.0","id":)" + std::to_string(number) +
           R"(,"method":"tools/call","params":{"name":"local__echo","arguments":{"message":")" +
           text + std::string(message_bytes - text.size(), '.') + "\"}}}";
  }
  virtual std::string request(std::uint64_t number) = 0;
  // Size of the answer at the front of `in`; 0: not all of it is there.
  virtual std::size_t whole(std::string_view in) const = 0;
  void send_text(std::string_view text) const {
    if (::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
      die("send");
    }
  }
  // Blocking, for the handshake.
  std::string receive() {
    std::string in;
    char buffer[8192];
    while (whole(in) == 0) {
      const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
      if (n <= 0) die("no answer to the handshake");
      in.append(buffer, static_cast<std::size_t>(n));
    }
    return in;
  }

 private:
  const int fd_;
  std::uint64_t number_ = 0;
  Clock::time_point started_;
  std::string in_;
};

int connected(const sockaddr *address, socklen_t size) {
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, address, size) != 0) die("connect");
  return fd;
}

class FramedClient final : public Client {
 public:
  explicit FramedClient(const Gateway &gateway) : Client(dial(gateway.socket_path())) {
    send_text(std::string_view("\0CAPSEM_META:bench\n", 19));
  }

 private:
  static int dial(const std::string &path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return connected(reinterpret_cast<const sockaddr *>(&address), sizeof address);
  }
  std::string request(std::uint64_t number) override {
    const std::string payload = json(number);
    std::string out;
    mcp_frame::Frame frame;
    frame.stream = static_cast<std::uint32_t>(number);
    frame.name = "bench";
    frame.payload = payload;
    mcp_frame::encode(frame, &out);
    return out;
  }
  std::size_t whole(std::string_view in) const override {
    if (in.size() < mcp_frame::length_bytes) return 0;
    const std::size_t size = mcp_frame::length_bytes + mcp_frame::total_length(in);
    return in.size() < size ? 0 : size;
  }
};

class HttpClient final : public Client {
 public:
  explicit HttpClient(const Gateway &gateway)
      : Client(dial(gateway.port())), host_("127.0.0.1:" + std::to_string(gateway.port())) {
    post(
        R"({"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18",)"
        R"("capabilities":{},"clientInfo":{"name":"bench","version":"1"}}})");
    const std::string answer = receive();
    std::string lower = answer;
    std::transform(lower.begin(), lower.end(), lower.begin(), ::tolower);
    const std::size_t at = lower.find("mcp-session-id: ");
    if (at == std::string::npos) throw std::runtime_error("no session: " + answer);
    session_ =
        "Mcp-Session-Id: " + answer.substr(at + 16, answer.find('\r', at) - at - 16) + "\r\n";
    post(R"({"jsonrpc":"2.0","method":"notifications/initialized"})");
    receive();
  }

 private:
  static int dial(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = connected(reinterpret_cast<const sockaddr *>(&address), sizeof address);
    const int on = 1;
    ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
  }
  std::string message(const std::string &body) const {
    return "POST /mcp HTTP/1.1\r\nHost: " + host_ +
           "\r\nContent-Type: application/json\r\n"
           "Accept: application/json, text/event-stream\r\n" +
           session_ + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  }
  void post(const std::string &body) const { send_text(message(body)); }
  std::string request(std::uint64_t number) override { return message(json(number)); }
  std::size_t whole(std::string_view in) const override {
    const std::size_t end = in.find("\r\n\r\n");
    if (end == std::string_view::npos) return 0;
    std::string head(in.substr(0, end));
    std::transform(head.begin(), head.end(), head.begin(), ::tolower);
    const std::size_t at = head.find("content-length: ");
    const std::size_t body =
        at == std::string::npos ? 0 : std::strtoul(head.c_str() + at + 16, nullptr, 10);
    return in.size() < end + 4 + body ? 0 : end + 4 + body;
  }

  const std::string host_;
  std::string session_;
};

// ---- measuring
// -----------------------------------------------------------------------------------

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

void run(const char *program, double seconds, int repetitions) {
  char folder[] = "/tmp/bulkhead-framed-XXXXXX";
  if (::mkdtemp(folder) == nullptr) die("mkdtemp");
  pin(load_cpu);
  std::map<std::pair<int, int>, std::vector<Cell>> cells;
  {
    const Gateway gateway(program, folder);
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      for (const int count : counts) {
        cells[{count, 0}].push_back(measure<FramedClient>(gateway, count, seconds));
        cells[{count, 1}].push_back(measure<HttpClient>(gateway, count, seconds));
      }
    }
  }
  std::printf("%7s  %-6s  %9s  %8s  %8s  %11s\n", "clients", "path", "calls/s", "p50 us", "p99 us",
              "CPU us/call");
  for (const auto &[key, repeated] : cells) {
    const Cell cell = median_of(repeated);
    std::printf("%7d  %-6s  %9.0f  %8.0f  %8.0f  %11.1f\n", key.first,
                key.second == 0 ? "frames" : "HTTP", cell.per_second, cell.p50_us, cell.p99_us,
                cell.cpu_us);
  }
  const std::string remove = std::string("rm -rf ") + folder;
  if (std::system(remove.c_str()) != 0) std::fprintf(stderr, "%s is left\n", folder);
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
