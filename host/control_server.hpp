// The control socket of a running gateway: whoever connects gets one JSON snapshot, then the end.
//
// 0600 in a 0700 folder, and only the gateway's own user and root get an answer. Nothing is read.
// Runs on the host's reactor; at most max_connections at once (more are closed unanswered), and
// one that does not take its answer within answer_ms is closed.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.hpp"
#include "reactor/reactor.hpp"

namespace bulkhead::program {

class ControlServer {
 public:
  static constexpr std::size_t max_connections = 8;
  static constexpr std::uint64_t answer_ms = 5'000;
  static constexpr std::uint64_t pause_ms = 1'000;  // when no descriptor is free to accept with

  // Makes a snapshot and gives it to `done`, at once or in a later turn.
  using Snapshot = std::function<void(std::function<void(std::string)> done)>;

  // Listens at path, which must not exist. The reactor must outlive the result.
  static Result<std::unique_ptr<ControlServer>> open(Reactor &reactor, std::string path,
                                                     Snapshot snapshot);
  ~ControlServer();  // removes the socket's file
  ControlServer(const ControlServer &) = delete;
  ControlServer &operator=(const ControlServer &) = delete;

 private:
  struct Connection {
    ControlServer *server = nullptr;
    int fd = -1;
    std::uint64_t number = 0;  // tells connections of one place apart
    std::string answer;
    std::size_t sent = 0;
    std::uint64_t watch = 0, timer = 0;
  };

  ControlServer(Reactor &reactor, std::string path, Snapshot snapshot)
      : reactor_(reactor), path_(std::move(path)), snapshot_(std::move(snapshot)) {}
  void accept_all();
  void start_answer(int fd);
  void answer(Connection &connection, std::string text);
  void write_more(Connection &connection);
  void close(Connection &connection);

  Reactor &reactor_;
  std::string path_;
  Snapshot snapshot_;
  std::uint64_t connections_made_ = 0;
  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  int fd_ = -1;
  std::uint64_t watch_ = 0;
  std::array<Connection, max_connections> connections_;
};

// The socket's file name for this process, unique among processes that share the folder.
std::string control_socket_name();

}  // namespace bulkhead::program
