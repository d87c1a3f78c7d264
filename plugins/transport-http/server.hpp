// Implements the HTTP server: connections, sessions and routes. The sources are:
//   server.cpp      lifecycle, connections, time-outs
//   streamable.cpp  requests: the guard, POST, GET and DELETE of Streamable HTTP
//   http_sse.cpp    requests: GET /sse and POST /messages of 2024-11-05
//   sessionless.cpp requests without a session
//   outgoing.cpp    messages from the host
//
// The plugin calls the host's transport functions (deliver, session_close ...) only in its own
// reactor events and in stop(), never inside send(). Connections and sessions that end because of
// send() are removed later, in settle(). Runs on the reactor thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bulkhead/abi/ext/draft/resume.h"
#include "bulkhead/abi/ext/transport.h"
#include "bulkhead/cpp/host.hpp"
#include "config.hpp"
#include "connection.hpp"
#include "eviction.hpp"
#include "guard.hpp"
#include "mcp_headers.hpp"
#include "response.hpp"
#include "sessions.hpp"
#include "stream-listener/stream_listener.hpp"

namespace transport_http {

class Server final : public ConnectionOwner {
 public:
  Server(const bh::Host &host, const bh_host_transport *transport, Config config);
  ~Server();

  // Starts listening. If `token` is not empty, clients must send it.
  bh_status listen(std::string token, bh_error *error);
  void stop_accepting() noexcept { listener_.close(); }
  // Stops accepting connections. A connection is closed after the response to the first request
  // that arrives on it after this call.
  void drain() noexcept;
  // Returns true if drain() has been called and connections have unsent output.
  bool sends_after_drain() const noexcept;
  // Closes all streams, connections and sessions, and releases all reactor resources.
  void stop() noexcept;

  bh_status send(const bh_outgoing &message);
  void session_ended(bh_session handle) noexcept;
  std::string_view endpoint() const noexcept { return endpoint_; }

 private:
  enum class Route : std::uint8_t { none, streamable, http_sse_stream, http_sse_message };

  // ConnectionOwner
  std::span<char> scratch() noexcept override { return {scratch_.get(), scratch_bytes}; }
  bool on_head(Connection &c, const RequestFeed &feed) override;
  void on_request(Connection &c, const RequestFeed &feed) override;
  void on_refused(Connection &c, int status) override;
  void on_quiet(Connection &c) override;
  void on_doomed(Connection &c, bool too_slow) noexcept override;
  void on_ready(Connection &c) noexcept override;
  void on_event_end() override { settle(); }
  void want_check(std::uint64_t at_ns) noexcept override;

  // server.cpp
  void set_bounds();
  void accepted(int fd, const sockaddr_storage &peer);
  bool make_room();
  void settle();
  void settle_soon() noexcept;
  void destroy(Connection &c) noexcept;
  void lost(Connection &c);
  void sweep();
  std::uint64_t sweep_sessions(std::uint64_t now_ns);
  void count(bh_metric metric, std::uint64_t n = 1) const noexcept;
  // Removes the session and notifies the host. The host is notified immediately, or in settle() if
  // this function is called inside send().
  void close_session(Session &session, std::uint32_t how = BH_SESSION_GONE);
  void close_sessions(const std::vector<bh_session> &handles);
  void end_streams(Session &session, std::uint32_t how);

  // streamable.cpp
  Route route_of(std::string_view path) const noexcept;
  bool admit(Connection &c, const RequestFeed &feed);
  bool admit_peer(Connection &c, const RequestFeed &feed);
  bool admit_token(Connection &c, std::string_view authorization);
  bool admit_method(Connection &c, const RequestFeed &feed, Route route);
  void preflight(Connection &c);
  bh_peer peer_of(const Connection &c) const noexcept;
  Session *open_session(Connection &c);
  // Evicts one session. Returns false if there are no sessions.
  bool evict_session();
  Session *reopen(Connection &c, std::string_view text);
  void seal(Session &session);
  Session *named_session(Connection &c, const RequestFeed &feed);
  bool revision_fits(Connection &c, const RequestFeed &feed, const Session &session);
  void post(Connection &c, const RequestFeed &feed);
  struct Delivery {
    bh_session session;  // 0 without a session
    std::uint64_t stream;
    const bh_peer *peer;  // set without a session
    const McpHeaders &headers;
  };
  bh_status hand_over(const Delivery &with, std::string_view body, bh_delivery *out);
  void deliver(Connection &c, Session &session, const RequestFeed &feed, bool fresh);
  void get(Connection &c, const RequestFeed &feed);
  void open_general(Connection &c, Session &session, std::uint32_t after);
  void resume(Connection &c, Session &session, std::uint64_t number, std::uint32_t after);
  void replay(Connection &c, Session &session, std::uint64_t number, std::uint32_t after);
  void remove(Connection &c, const RequestFeed &feed);

  // sessionless.cpp
  bool deliver_sessionless(Connection &c, const RequestFeed &feed);
  bh_status send_sessionless(const bh_outgoing &message);
  void lost_sessionless(std::uint64_t stream);
  void end_sessionless();

  // http_sse.cpp
  void open_http_sse(Connection &c);
  void post_http_sse(Connection &c, const RequestFeed &feed);
  bh_status send_http_sse(Session &session, const bh_outgoing &message);

  // outgoing.cpp
  bh_status send_now(Session &session, const bh_outgoing &message);
  bh_status send_answer(Session &session, Stream &stream, const bh_outgoing &message);
  bh_status send_on_stream(Session &session, Stream &stream, const bh_outgoing &message);
  bh_status send_general(Session &session, const bh_outgoing &message);
  bool upgrade(Session &session, Stream &stream);
  void remember(Session &session, std::uint64_t stream, std::uint32_t sequence,
                const bh_outgoing &message, bool written);
  std::string session_line(Session &session);
  void replay_held(Session &session);

  static constexpr std::size_t scratch_bytes = 256u << 10;
  static constexpr std::uint64_t event_age_ns = 300'000'000'000;  // for written events

  const bh::Host &host_;
  const bh_host_transport *transport_;
  const bh_host_resume *resume_;  // null if sessions do not outlive this process
  const bh_host_metrics *metrics_;
  Config config_;
  ConnectionBounds bounds_;
  http_codec::BodyBudget body_budget_;
  std::size_t max_connections_ = 0;
  std::uint64_t sweep_min_ns_ = 0;  // resolution of the time-outs
  Guard guard_;
  WrongTokens wrong_tokens_;
  stream_listener::StreamListener listener_;
  std::string endpoint_;
  std::unique_ptr<char[]> scratch_;

  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Connection *> doomed_;
  std::vector<Connection *> ready_;
  std::vector<std::pair<bh_session, std::uint32_t>> closing_;  // reported by settle()
  Sessions sessions_;
  std::unordered_map<std::uint64_t, Connection *> sessionless_;  // by stream; one per connection
  std::uint64_t next_sessionless_ = 1;
  Eviction eviction_;
  bh_timer sweep_ = 0;
  std::uint64_t sweep_at_ns_ = 0;
  bh_timer soon_ = 0;
  bool in_send_ = false;
  bool draining_ = false;
  bool stopped_ = false;
  bh_metric events_dropped_ = 0, slow_dropped_ = 0, refused_ = 0;
  bh_metric sessions_evicted_ = 0, connections_evicted_ = 0;
};

}  // namespace transport_http
