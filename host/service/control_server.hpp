// HTTP/1.1 on the service socket, one request per connection.
//
// Reads only from peers that `admit` accepts. Runs on the reactor thread. Limited to
// max_connections connections; additional connections are closed without a response. A client that
// does not send its request or read its response in time is disconnected.
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
  std::string method;  // for example "GET"
  std::string path;    // "/status", without the query
  std::string host;    // the Host header; empty: none
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
  static constexpr std::uint64_t pause_ms = 1'000;  // after accept() ran out of descriptors

  // Sends the answer, either immediately or later, on the loop's thread. The answer is dropped if
  // the client or the server no longer exists. The connection stays open until the answer is sent.
  using Reply = std::function<void(ControlAnswer)>;
  using Handler = std::function<void(const ControlRequest &, Reply)>;

  // Decides whether the peer of `fd` may send requests. Calls `done` once, immediately or from the
  // loop. If `done` is not called within request_ms, the connection is closed. `fd` is borrowed
  // until `admit` returns.
  using Admit = std::function<void(int fd, std::function<void(bool)> done)>;

  // `listener` is borrowed and non-blocking, and may be shared with processes that do not accept
  // connections. The listener and the reactor must outlive this object.
  ControlServer(Reactor &reactor, int listener, Admit admit, Handler handler);
  ~ControlServer();
  ControlServer(const ControlServer &) = delete;
  ControlServer &operator=(const ControlServer &) = delete;

 private:
  enum class State : std::uint8_t { admitting, reading, answering };
  struct Connection {
    ControlServer *server = nullptr;
    std::uint64_t number = 0;  // identifies the client, since slots are reused
    int fd = -1;
    State state = State::admitting;
    std::unique_ptr<http_codec::RequestFeed> feed;
    std::string answer;
    std::size_t sent = 0;
    std::uint64_t watch = 0, timer = 0;
    bool sent_continue = false;  // "100 Continue" is sent once
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
  // Expires when the server is destroyed, so that later answers are dropped.
  const std::shared_ptr<ControlServer *> self_ = std::make_shared<ControlServer *>(this);
};

}  // namespace bulkhead::program
