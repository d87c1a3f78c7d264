// Manages all connections of a transport: accepted, dialed and handed off. Runs on the reactor
// thread.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "stream-listener/stream_listener.hpp"
#include "transport-vsock/connection.hpp"
#include "transport-vsock/guest_dialer.hpp"
#include "transport-vsock/log_limiter.hpp"
#include "transport-vsock/splice.hpp"

namespace transport_vsock {

class Endpoint final : public ConnectionOwner {
 public:
  // `host`, `up` and `config` must outlive the endpoint.
  Endpoint(const bh::Host &host, const bh_host_transport *up, const Config &config);
  ~Endpoint();
  Endpoint(const Endpoint &) = delete;
  Endpoint &operator=(const Endpoint &) = delete;

  bh_status listen(bh_error *error);  // thread: [control] in bulkhead/abi/core.h
  void stop_accepting() noexcept;
  // Closes all connections and releases all reactor resources.
  void stop() noexcept;

  bh_status send(const bh_outgoing &message);
  void session_ended(bh_session session) noexcept;

 private:
  // ConnectionOwner
  void on_session(Connection &connection, bh_session session) override;
  void on_other(Connection &connection, std::string_view bytes) override;
  void on_unflushed(Connection &connection) override;
  void on_doomed(Connection &connection) noexcept override;
  void on_too_much_unsent() override;
  void on_event_end() override { settle(); }
  void want_checks() noexcept override;

  void begin();
  void accepted(int fd, const sockaddr_storage &peer);
  void refuse(int fd, bh_metric counter, LogLimiter &limiter, const std::string &why);
  bool allowed(const sockaddr_storage &peer, std::uint32_t id) const;
  std::size_t connections_of(std::uint32_t peer) const;
  void add(int fd, std::string peer, std::optional<std::uint32_t> id, std::string_view early);
  void end_of_turn();
  void turn_end_wanted() noexcept;
  void settle();
  void destroy(Connection &connection) noexcept;
  void check_all();
  void handoff_failed(const std::string &why);
  void splice(Socket guest, std::uint32_t peer, Socket service, std::string_view early);
  static void on_service_reached(void *arg);
  static void on_splice_ended(void *arg, Splice &splice);

  const std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  Address handoff_;
  stream_listener::StreamListener listener_;
  GuestDialer dialer_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::unique_ptr<Splice>> splices_;
  std::unordered_map<bh_session, Connection *> by_session_;
  std::vector<Connection *> doomed_, unflushed_;
  std::vector<std::uint32_t> handing_off_;  // peers that wait for the service
  LogLimiter not_listed_, too_many_of_peer_, too_many_;
  std::uint64_t handoff_failures_ = 0;  // since the last success
  std::uint64_t check_ms_;              // resolution of the time-outs
  bh_timer check_timer_ = 0;
  bool deferred_ = false, stopped_ = false;
};

}  // namespace transport_vsock
