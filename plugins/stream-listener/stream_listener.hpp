// Accepts connections on a listening socket that the host provides. Connections are accepted in
// batches. If the system runs out of descriptors or memory, accepting pauses. Runs on the reactor
// thread.
#pragma once

#include <bulkhead/cpp/host.hpp>

#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <string_view>

namespace stream_listener {

class StreamListener {
 public:
  static constexpr int batch = 64;                  // connections accepted per event loop iteration
  static constexpr std::uint64_t pause_ms = 1'000;  // pause after descriptors or memory ran out

  // Takes ownership of the descriptor of a new connection (non-blocking, close-on-exec). `peer` is
  // the address of the other side.
  using Accepted = std::function<void(int fd, const sockaddr_storage &peer)>;

  // make_room is called when the process has no free descriptors. It must close at least one
  // connection, or return false if it cannot. make_room may be empty.
  StreamListener(const bh::Host &host, Accepted accepted, std::function<bool()> make_room = {})
      : host_(host), accepted_(std::move(accepted)), make_room_(std::move(make_room)) {}
  ~StreamListener() { close(); }
  StreamListener(const StreamListener &) = delete;
  StreamListener &operator=(const StreamListener &) = delete;

  // The users that may connect to a Unix socket. The mode of the socket file enforces this. With
  // `everybody`, the Accepted callback must reject unauthorized peers.
  enum class Reach : std::uint8_t { own_user, everybody };

  // Opens the socket and starts accepting connections. Error messages name the address and suggest
  // a remedy.
  bh_status open(const sockaddr_storage &address, socklen_t size, std::string_view as_configured,
                 bh_error *error, Reach reach = Reach::own_user);
  void close() noexcept;

  // Returns the bound address. If port 0 was configured, the address contains the port that the
  // kernel chose.
  const sockaddr_storage &bound() const noexcept { return bound_; }

 private:
  void on_pause_over() noexcept;
  void accept_batch();
  void pause(int error);

  const bh::Host &host_;
  Accepted accepted_;
  std::function<bool()> make_room_;
  int fd_ = -1;
  bh_watch watch_ = 0;
  bh_timer pause_ = 0;
  bool warned_ = false;
  sockaddr_storage bound_{};
};

}  // namespace stream_listener
