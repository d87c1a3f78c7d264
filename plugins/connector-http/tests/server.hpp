// A test HTTP server on 127.0.0.1, on a port that the kernel selects. Each connection has its own
// thread. The test provides a function that handles the requests.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace connector_http::testing {

struct Request {
  std::string method, target, body;
  std::map<std::string, std::string> headers;  // names in lowercase
  int connection = 0;                          // number of the connection, from 1
  int number = 0;                              // number of the request on this server, from 1

  std::string header(const std::string &name) const {
    const auto it = headers.find(name);
    return it == headers.end() ? "" : it->second;
  }
};

// The server's end of a connection, which is passed to the request handler.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {}
  void send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t n = ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void answer(int status, std::string_view body, const std::string &headers = {},
              const std::string &type = "application/json") {
    std::string head = "HTTP/1.1 " + std::to_string(status) + " Whatever\r\n" + headers;
    if (!type.empty()) head += "Content-Type: " + type + "\r\n";
    head += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
    send(head.append(body));
  }
  // Starts an event stream with chunked encoding. end_events() ends the stream.
  void begin_events(const std::string &headers = {}) {
    send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + headers +
         "Transfer-Encoding: chunked\r\n\r\n");
  }
  void event(const std::string &text) {
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", text.size());
    send(size + text + "\r\n");
  }
  void end_events() { send("0\r\n\r\n"); }
  void close() { open_ = false; }
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    open_ = false;
  }
  // Waits until the client closes the connection or the server stops.
  void wait_closed() {
    char byte;
    while (::recv(fd_, &byte, 1, 0) > 0) {
    }
    open_ = false;
  }
  bool open() const { return open_; }
  int fd() const { return fd_; }

 private:
  int fd_;
  bool open_ = true;
};

class Server {
 public:
  using Handler = std::function<void(const Request &, Peer &)>;

  explicit Server(Handler handler, int family = AF_INET) : handler_(std::move(handler)) {
    listener_ = ::socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof at;
    if (::bind(listener_, reinterpret_cast<sockaddr *>(&at), n) != 0 ||
        ::listen(listener_, 256) != 0) {
      std::abort();
    }
    ::getsockname(listener_, reinterpret_cast<sockaddr *>(&at), &n);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { accept_all(); });
  }
  ~Server() {
    ending_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    {
      const std::lock_guard lock(mutex_);
      for (int fd : open_) ::shutdown(fd, SHUT_RDWR);
    }
    for (std::thread &t : workers_) t.join();
  }

  int port() const { return port_; }
  std::string url(const std::string &path = "/mcp") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  std::vector<Request> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  int connections() const { return connections_; }
  int open() const {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(open_.size());
  }
  // Closes all connections. No request may be in progress.
  void close_idle() {
    const std::lock_guard lock(mutex_);
    for (int fd : open_) ::shutdown(fd, SHUT_RDWR);
  }

 private:
  void accept_all() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      // A test has exhausted the file descriptors of the process, so accept() is retried.
      if (fd < 0 && errno == EMFILE && !ending_) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        continue;
      }
      if (fd < 0 || ending_) {
        if (fd >= 0) ::close(fd);
        return;
      }
      const int one = 1;
      ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
      const int number = ++connections_;
      const std::lock_guard lock(mutex_);
      open_.push_back(fd);
      workers_.emplace_back([this, fd, number] { serve(fd, number); });
    }
  }

  void serve(int fd, int number) {
    Peer peer(fd);
    std::string in;
    Request request;
    while (peer.open() && read_request(fd, &in, &request)) {
      request.connection = number;
      {
        const std::lock_guard lock(mutex_);
        request.number = static_cast<int>(requests_.size()) + 1;
        requests_.push_back(request);
      }
      handler_(request, peer);
    }
    const std::lock_guard lock(mutex_);
    std::erase(open_, fd);
    ::close(fd);
  }

  static bool fill(int fd, std::string *in) {
    char room[65536];
    const ssize_t n = ::recv(fd, room, sizeof room, 0);
    if (n <= 0) return false;
    in->append(room, static_cast<std::size_t>(n));
    return true;
  }

  static bool read_request(int fd, std::string *in, Request *out) {
    std::size_t end;
    while ((end = in->find("\r\n\r\n")) == std::string::npos) {
      if (!fill(fd, in)) return false;
    }
    *out = Request{};
    std::string_view head(in->data(), end);
    const std::string_view line = head.substr(0, head.find("\r\n"));
    const std::size_t a = line.find(' '), b = line.rfind(' ');
    out->method = line.substr(0, a);
    out->target = line.substr(a + 1, b - a - 1);
    for (std::size_t at = head.find("\r\n"); at != std::string_view::npos;) {
      const std::size_t next = head.find("\r\n", at + 2);
      const std::string_view field = head.substr(at + 2, next - at - 2);
      const std::size_t colon = field.find(": ");
      std::string name(field.substr(0, colon));
      std::transform(name.begin(), name.end(), name.begin(), ::tolower);
      if (colon != std::string_view::npos) out->headers[name] = field.substr(colon + 2);
      at = next;
    }
    const std::string length = out->header("content-length");
    const std::size_t size = length.empty() ? 0 : std::stoul(length);
    while (in->size() < end + 4 + size) {
      if (!fill(fd, in)) return false;
    }
    out->body = in->substr(end + 4, size);
    in->erase(0, end + 4 + size);
    return true;
  }

  Handler handler_;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<int> connections_ = 0;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::vector<std::thread> workers_;
  std::vector<int> open_;
  std::vector<Request> requests_;
};

}  // namespace connector_http::testing
