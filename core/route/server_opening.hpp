// Sends the opening requests of a lane's connection, and determines the server's protocol
// generation and revision from the responses. Also checks whether the server still supports them.
//
// Owned by the lane. Used on the reactor thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "route/conversation.hpp"
#include "route/lane.hpp"
#include "route/lane_wire.hpp"
#include "route/opening.hpp"

namespace bulkhead {

class ServerOpening {
 public:
  // The lane.
  class Owner {
   public:
    virtual ~Owner() = default;
    // Called when the server has accepted the opening request of this edge.
    virtual void opened_with(const ServerEdge &edge, ServerEdge::Opened opened) = 0;
    // Called when the connection could not be opened. `retry_after_ms` is the delay that the server
    // requested, or 0.
    virtual void attempt_failed(const Error &error, std::uint32_t retry_after_ms) = 0;
    // Called when the server no longer supports the connection's protocol generation.
    virtual void reopen() = 0;
  };

  ServerOpening(Lane &lane, LaneHost &host, Conversation &conversation, LaneWire &wire,
                Owner &owner)
      : lane_(lane), host_(host), conversation_(conversation), wire_(wire), owner_(owner) {}
  ~ServerOpening() { stop(); }
  ServerOpening(const ServerOpening &) = delete;
  ServerOpening &operator=(const ServerOpening &) = delete;

  // All opening requests for a connection share this time-out.
  std::uint64_t timeout_ms() const;
  // Called when the connector has opened a connection. Sends the first request.
  void start();
  // Called when the connection has ended.
  void stop();
  // Called with the response to an opening request. If there is no response, `error` is set and
  // `scan` is null.
  void answered(std::uint64_t exchange, const mcp::Scan *scan, std::string_view message,
                const Error *error, std::uint32_t retry_after_ms);
  // Called when the connection was lost. Returns true if the server has probably exited because of
  // server/discover: some servers exit when they receive a request before initialize. The caller
  // must then restart the server immediately and not count a failure. The new connection starts
  // with initialize, so this happens at most once in a row.
  bool ended_on_probe(const Error &error);

  // Called when a request has failed in a way that suggests a server of another protocol
  // generation. Over HTTP, a server can be replaced by such a server without the lane noticing. If
  // the connection has no sessions and may use HTTP, sends server/discover, and calls
  // Owner::reopen() if the server rejects it.
  void recheck();
  // Called with the response to that request, as in answered().
  void rechecked(const mcp::Scan *scan, std::string_view message, const Error *error);
  // Returns true if the error shows that a server over HTTP was replaced by one without sessions.
  bool denies_sessions(const Message &answer) const;

 private:
  void send();
  void advance(Opening::Step step, std::uint32_t retry_after_ms);
  void watch_silence();
  Error rejection(std::uint64_t exchange, const mcp::Scan &scan, std::string_view message) const;

  Lane &lane_;
  LaneHost &host_;
  Conversation &conversation_;
  LaneWire &wire_;
  Owner &owner_;
  Opening opening_;
  std::uint64_t since_ns_ = 0;
  std::uint64_t silence_timer_ = 0;
  bool rechecking_ = false;
};

}  // namespace bulkhead
