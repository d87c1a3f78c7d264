// Connects to a port in a guest through the Unix socket of the guest's monitor (Firecracker, Cloud
// Hypervisor): sends "CONNECT 5002" and receives "OK 1073741824". Reconnects whenever the
// connection is closed. Runs on the reactor thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "transport-vsock/dial.hpp"

namespace transport_vsock {

class GuestDialer {
 public:
  static constexpr std::uint64_t min_pause_ms = 500, max_pause_ms = 30'000;
  static constexpr std::size_t max_reply = 64;  // bytes of "OK ...\n"

  // Takes ownership of the connected descriptor. `early` contains the bytes that the guest has
  // already sent.
  using Connected = std::function<void(int fd, std::string_view early)>;

  GuestDialer(const bh::Host &host, std::shared_ptr<const bool> alive, Connected connected)
      : host_(host), alive_(std::move(alive)), connected_(std::move(connected)) {}
  ~GuestDialer() { stop(); }
  GuestDialer(const GuestDialer &) = delete;
  GuestDialer &operator=(const GuestDialer &) = delete;

  // `reply_ms` is the time-out for the monitor's response.
  void start(const Address &address, std::string name, std::uint64_t reply_ms);
  // Must be called when the connection that was passed to `connected` has been closed. Connects
  // again after a pause.
  void connection_ended();
  void stop() noexcept;

 private:
  void on_event(std::uint32_t events) noexcept;
  void try_now();
  void dialled(Socket socket, const std::string &error);
  void write_request();
  void read_reply();
  void reply_overdue();
  void failed(const std::string &why);

  const bh::Host &host_;
  const std::shared_ptr<const bool> alive_;
  const Connected connected_;
  Address address_;
  std::string name_, request_, reply_, last_failure_;
  std::uint64_t reply_ms_ = 0, pause_ms_ = min_pause_ms;
  Socket socket_;
  bh_watch watch_ = 0;
  bh_timer timer_ = 0;
  bool stopped_ = true;
};

}  // namespace transport_vsock
