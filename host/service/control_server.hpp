// An HTTP/1.1 server for the service socket. Each connection carries one request.
//
// Reads only from peers that `admit` accepts. If max_connections connections are open, new
// connections are closed without a response. A client that does not send its request or read its
// response in time is disconnected. Runs on the reactor thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "http-codec/request_feed.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::program {

struct ControlRequest {
  std::string method;
  std::string path;  // for example "/status"; without the query string
  std::string host;  // the Host header; empty if omitted
  std::string body;
};

struct ControlAnswer {
  int status = 200;
  std::string body;
  std::string_view type = "application/json";
};

// Returns {"error":"..."}.
std::string error_body(std::string_view why);

class ControlServer {
 public:
  static constexpr std::size_t max_connections = 8;
  static constexpr std::uint32_t max_head_bytes = 16u << 10;
  static constexpr std::size_t max_body_bytes = 1u << 20;
  static constexpr std::uint64_t request_ms = 5'000;
  static constexpr std::uint64_t answer_ms = 5'000;
  // How long to wait after accept() has failed for lack of descriptors or memory.
  static constexpr std::uint64_t pause_ms = 1'000;

  // Sends the response. May be called immediately or later, on the reactor thread; the connection
  // stays open until then. If the client has disconnected or the server was destroyed, the response
  // is dropped.
  using Reply = std::function<void(ControlAnswer)>;
  using Handler = std::function<void(const ControlRequest &, Reply)>;

  // Determines whether the peer of `fd` may send requests. Must call `done` exactly once, either
  // immediately or later from the loop. If `done` is not called within request_ms, the connection
  // is closed. `fd` is borrowed until the Admit function returns.
  using Admit = std::function<void(int fd, std::function<void(bool)> done)>;

  // `listener` is borrowed and must be non-blocking. Other processes may have the socket open but
  // must not accept connections on it. The listener and the reactor must outlive this object.
  ControlServer(Reactor &reactor, int listener, Admit admit, Handler handler);
  ~ControlServer();
  ControlServer(const ControlServer &) = delete;
  ControlServer &operator=(const ControlServer &) = delete;

 private:
  enum class State : std::uint8_t { admitting, reading, answering };
  struct Connection {
    ControlServer *server = nullptr;
    std::uint64_t number = 0;  // identifies the connection; its slot may be reused by another
    int fd = -1;
    State state = State::admitting;
    std::unique_ptr<http_codec::RequestFeed> feed;
    std::string answer;
    std::size_t sent = 0;
    std::uint64_t watch = 0, timer = 0;
    bool sent_continue = false;  // "100 Continue" has been sent
  };

  void accept_all();
  void start(int fd);
  void admitted(Connection &connection, bool may_ask);
  Connection *find(std::size_t slot, std::uint64_t number);
  void on_ready(Connection &connection, std::uint32_t events);
  void read_more(Connection &connection);
  void process_input(Connection &connection, std::string_view in);
  void hand_over(Connection &connection);
  void answer(Connection &connection, const ControlAnswer &answer);
  void write_more(Connection &connection);
  void set_timer(Connection &connection, std::uint64_t ms);
  void close(Connection &connection);

  Reactor &reactor_;
  const int listener_;
  const Admit admit_;
  const Handler handler_;
  std::uint64_t watch_ = 0, numbers_ = 0;
  std::array<Connection, max_connections> connections_;
  // Expires with this object, so that responses that arrive later are dropped.
  const std::shared_ptr<ControlServer *> self_ = std::make_shared<ControlServer *>(this);
};

}  // namespace bulkhead::program
