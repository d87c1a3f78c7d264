// HTTP/1.1 on the service socket, one request a connection.
//
// Only peers that `admit` lets in are read from. Runs on a reactor; at most max_connections at once
// (more are closed unanswered). A client that does not send its request, or take its answer, within
// its time is closed.
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
  std::string method;  // "GET"
  std::string path;    // "/status"; without the query
  std::string host;    // the header; empty: there was none
  std::string body;
};

struct ControlAnswer {
  int status = 200;
  std::string body;
  std::string_view type = "application/json";
};

// {"error":"..."}
std::string error_body(std::string_view why);

class ControlServer {
 public:
  static constexpr std::size_t max_connections = 8;
  static constexpr std::uint32_t max_head_bytes = 16u << 10;
  static constexpr std::size_t max_body_bytes = 1u << 20;
  static constexpr std::uint64_t request_ms = 5'000;
  static constexpr std::uint64_t answer_ms = 5'000;
  static constexpr std::uint64_t pause_ms = 1'000;  // when no descriptor is free to accept with

  // The answer may come later, from the loop's thread; what comes after the client has gone, or
  // after the server has, is dropped. Without an answer the connection stays, so give one.
  using Reply = std::function<void(ControlAnswer)>;
  using Handler = std::function<void(const ControlRequest &, Reply)>;

  // May who is at the other end of `fd` ask? `done` once, now or from the loop, or never: then the
  // client is closed after request_ms. `fd` is borrowed until `admit` returns.
  using Admit = std::function<void(int fd, std::function<void(bool)> done)>;

  // `listener` is borrowed, non-blocking, and may be shared with processes that do not accept. It
  // and the reactor must outlive this.
  ControlServer(Reactor &reactor, int listener, Admit admit, Handler handler);
  ~ControlServer();
  ControlServer(const ControlServer &) = delete;
  ControlServer &operator=(const ControlServer &) = delete;

 private:
  enum class State : std::uint8_t { admitting, reading, answering };
  struct Connection {
    ControlServer *server = nullptr;
    std::uint64_t number = 0;  // of the client; a slot is used again
    int fd = -1;
    State state = State::admitting;
    std::unique_ptr<http_codec::RequestFeed> feed;
    std::string answer;
    std::size_t sent = 0;
    std::uint64_t watch = 0, timer = 0;
    bool told_to_continue = false;  // "100 Continue" is sent once
  };

  void accept_all();
  void start(int fd);
  void admitted(Connection &connection, bool may_ask);
  Connection *find(std::size_t slot, std::uint64_t number);
  void on_ready(Connection &connection, std::uint32_t events);
  void read_more(Connection &connection);
  void consume(Connection &connection, std::string_view in);
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
  // What comes when the server has gone finds this expired.
  const std::shared_ptr<ControlServer *> self_ = std::make_shared<ControlServer *>(this);
};

}  // namespace bulkhead::program
