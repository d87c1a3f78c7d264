// Implements the clients of micro_framed.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "framed_gateway.hpp"
#include "mcp-frame/frame.hpp"

namespace framed {

using Clock = std::chrono::steady_clock;

constexpr std::size_t message_bytes = 64;

// A client with one connection and one in-flight call. Checks that each response contains the
// number of its call.
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
  // Reads from the socket. When the response is complete, sets *us to the duration of the call and
  // returns true.
  bool readable(double *us) {
    char buffer[8192];
    const ssize_t n = ::recv(fd_, buffer, sizeof buffer, 0);
    if (n <= 0) die("the gateway has closed the connection");
    in_.append(buffer, static_cast<std::size_t>(n));
    const std::size_t size = whole(in_);
    if (size == 0) return false;
    if (!right(in_, number_)) {
      throw std::runtime_error("a wrong answer: " + in_);
    }
    in_.clear();
    *us = std::chrono::duration<double, std::micro>(Clock::now() - started_).count();
    return true;
  }

 protected:
  static std::string mark(std::uint64_t number) { return "call " + std::to_string(number) + " "; }
  // `more` contains further arguments, each after a comma.
  static std::string json(std::uint64_t number, std::string_view more = {}) {
    const std::string text = mark(number);
    return R"({"jsonrpc":"2.0","id":)" + std::to_string(number) +
           R"(,"method":"tools/call","params":{"name":"local__echo","arguments":{"text":")" + text +
           std::string(message_bytes - text.size(), '.') + '"' + std::string(more) + "}}}";
  }
  virtual std::string request(std::uint64_t number) = 0;
  // Returns true if `answer` is the response to this call.
  virtual bool right(std::string_view answer, std::uint64_t number) const {
    return answer.find(mark(number)) != std::string_view::npos;
  }
  // Returns the size of the response at the beginning of `in`, or 0 if it is incomplete.
  virtual std::size_t whole(std::string_view in) const = 0;
  void send_text(std::string_view text) const {
    if (::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(text.size())) {
      die("send");
    }
  }
  // Blocks until a response is complete. Used for the handshake.
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

inline int connected(const sockaddr *address, socklen_t size) {
  const int fd = ::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ::connect(fd, address, size) != 0) die("connect");
  return fd;
}

class FramedClient : public Client {
 public:
  explicit FramedClient(const Gateway &gateway) : Client(dial(gateway.socket_path())) {
    send_text(std::string_view("\0CAPSEM_META:bench\n", 19));
  }

 protected:
  virtual std::string text(std::uint64_t number) const { return json(number); }

 private:
  static int dial(const std::string &path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    return connected(reinterpret_cast<const sockaddr *>(&address), sizeof address);
  }
  std::string request(std::uint64_t number) override {
    const std::string payload = text(number);
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

// Makes calls that the policy in tests/judges rejects.
class BlockedClient final : public FramedClient {
 public:
  using FramedClient::FramedClient;

 private:
  std::string text(std::uint64_t number) const override {
    return json(number, R"(,"judge":"block")");
  }
  bool right(std::string_view answer, std::uint64_t number) const override {
    return answer.find("\"id\":" + std::to_string(number) + ",") != std::string_view::npos &&
           answer.find("MCP request blocked by policy (test-rule)") != std::string_view::npos;
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

}  // namespace framed
