// The service socket of a running gateway: HTTP/1.1 over a Unix socket, one request a connection.
//
// 0600 in a 0700 folder; only peers that peer_may_ask() admits get an answer. Runs on the host's
// reactor; at most max_connections at once (more are closed unanswered). A client that does not
// send its request, or take its answer, within its time is closed. It parses nothing that an MCP
// client or server has sent.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::program {

struct ControlRequest {
  std::string method;  // "GET"
  std::string path;    // "/status"; without the query
  std::string body;
};

struct ControlAnswer {
  int status = 200;
  std::string body;  // JSON
};

class ControlServer {
 public:
  static constexpr std::size_t max_connections = 8;
  static constexpr std::size_t max_head_bytes = 16u << 10;
  static constexpr std::size_t max_body_bytes = 1u << 20;
  static constexpr std::uint64_t request_ms = 5'000;
  static constexpr std::uint64_t answer_ms = 5'000;
  static constexpr std::uint64_t pause_ms = 1'000;  // when no descriptor is free to accept with

  // The answer may come later, from the loop's thread; what comes after the client has gone, or
  // after the server has, is dropped. Without an answer the connection stays, so give one.
  using Reply = std::function<void(ControlAnswer)>;
  using Handler = std::function<void(const ControlRequest &, Reply)>;

  // Listens at path, which must not exist. The reactor must outlive the result. `own`: see
  // peer_may_ask().
  static Result<std::unique_ptr<ControlServer>> open(Reactor &reactor, std::string path, pid_t own,
                                                     Handler handler);
  ~ControlServer();  // removes the socket's file
  ControlServer(const ControlServer &) = delete;
  ControlServer &operator=(const ControlServer &) = delete;

  const std::string &path() const noexcept { return path_; }

 private:
  struct Connection {
    ControlServer *server = nullptr;
    std::uint64_t number = 0;  // of the client; a slot is used again
    int fd = -1;
    bool answering = false;
    std::string in;
    std::string answer;
    std::size_t sent = 0;
    std::uint64_t watch = 0, timer = 0;
  };

  ControlServer(Reactor &reactor, std::string path, pid_t own, Handler handler)
      : reactor_(reactor), path_(std::move(path)), own_(own), handler_(std::move(handler)) {}
  void accept_all();
  void start(int fd);
  void on_ready(Connection &connection, std::uint32_t events);
  void read_more(Connection &connection);
  void take(Connection &connection);
  void hand_over(Connection &connection, ControlRequest request);
  void answer(Connection &connection, const ControlAnswer &answer);
  void write_more(Connection &connection);
  void set_timer(Connection &connection, std::uint64_t ms);
  void close(Connection &connection);

  Reactor &reactor_;
  const std::string path_;
  const pid_t own_;
  const Handler handler_;
  int fd_ = -1;
  std::uint64_t watch_ = 0, numbers_ = 0;
  std::array<Connection, max_connections> connections_;
  // Replies that come when the server has gone find this expired.
  const std::shared_ptr<ControlServer *> self_ = std::make_shared<ControlServer *>(this);
};

// The socket's file name for this process, unique among processes that share the folder.
std::string control_socket_name();

}  // namespace bulkhead::program
