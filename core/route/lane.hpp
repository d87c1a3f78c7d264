// A lane: the conversation with one server for one group of clients. A lane outlives its
// connections: if a connection is lost, the lane reconnects and its clients keep their names for
// it.
//
// Runs on the I/O thread. Owned by the Upstream.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "catalog/items.hpp"
#include "mcp/scan.hpp"
#include "route/call.hpp"
#include "route/exchange.hpp"
#include "route/lane_host.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

class Upstream;
struct View;

enum class LaneState : std::uint8_t {
  idle,        // not started
  connecting,  // opening the connection, or in the handshake or the first listing
  ready,
  waiting,  // failed; a timer starts the next attempt
  closed    // permanently
};

class Lane {
 public:
  Lane(LaneHost &host, Upstream &upstream, ClientCaps caps, std::uint64_t session)
      : host_(host), upstream_(upstream), caps_(caps), session_(session) {}
  virtual ~Lane() = default;
  Lane(const Lane &) = delete;
  Lane &operator=(const Lane &) = delete;

  virtual void start() = 0;
  // Closes the lane permanently. Its calls must have been detached.
  virtual void close() = 0;

  // Sends the exchange, queues it (with a limit) or fails its call. The exchange may have ended
  // when this returns.
  virtual void submit(Exchange &exchange, const CallInHand &hand) = 0;
  // Notifies the server that an exchange was cancelled, timed out or lost its client. The exchange
  // must have been detached. `reason` is the client's cancelled notification, or empty if there is
  // none.
  virtual void retract(std::uint64_t exchange, bool sent, std::string_view reason,
                       const mcp::Scan *reason_scan) = 0;
  // The answer of this exchange is no longer awaited; the server is not notified.
  virtual void abandon(std::uint64_t exchange) = 0;
  // The handle of the current connection; 0 if there is none or the lane does not need one.
  virtual bh_lane handle() const noexcept { return 0; }
  // An exchange of this lane has ended: sends the next queued call.
  virtual void pump() {}
  // Sends a notification or a response, which is dropped if there is no connection.
  virtual void send(std::uint32_t kind, const bh_str *parts, std::uint32_t count) = 0;
  // Returns false if the server's protocol generation has no such message.
  virtual bool takes(mcp::Method) const { return true; }
  // Sends a request on behalf of all clients of this lane, if the server takes it; its answer is
  // discarded.
  virtual void request_quietly(mcp::Method method, std::string_view params) = 0;
  // The server was removed from the profile or changed: calls in flight may finish, no new calls
  // arrive, and a lost connection is not replaced.
  void drain() noexcept { draining_ = true; }
  bool draining() const noexcept { return draining_; }
  // For limits.grace_ms, shows the list of the lane that this lane replaces, so that the tools of a
  // server that restarts quickly stay listed. Call it before start().
  virtual void inherit(const Lane &) {}
  // The definition has changed in a way that needs no new connection (tool lists, limits).
  virtual void redefined() {}
  // The server has the client's `initialized`: notifications can be sent.
  virtual bool opened() const { return state_ == LaneState::ready; }
  // The server is started on first use, not with the gateway.
  virtual bool lazy() const { return false; }
  // Returns true if the server is lazy and not running, and its lists are unknown until it is
  // started.
  virtual bool unknown() const { return false; }
  // Shows the remembered list of a lazy server, if there is one. Call it before settle_unstarted().
  virtual void recall() {}
  // Marks a lazy server that is not started as settled.
  void settle_unstarted() noexcept { settled_ = true; }
  // The lane is about to be started: clients wait for its list.
  void expect() noexcept { settled_ = false; }
  // Returns true if the server is lazy and not connected until the next call.
  bool sleeps() const noexcept { return state_ == LaneState::idle && settled_; }
  bool can_take_calls() const noexcept { return state_ == LaneState::ready || sleeps(); }

  LaneState state() const noexcept { return state_; }
  // Returns true if the first attempt to connect has succeeded or failed.
  bool settled() const noexcept { return settled_; }
  // Returns true if the lane's items are listed: it is ready, or was ready within limits.grace_ms.
  bool listed() const noexcept { return listed_; }
  // Returns true if the listed items are remembered ones: the server has not listed them since the
  // start.
  bool recalled() const noexcept { return recalled_; }
  const std::string &reason() const noexcept { return reason_; }
  const ItemList &items(ItemKind kind) const { return items_[static_cast<std::size_t>(kind)]; }
  const ServerCaps &server_caps() const noexcept { return server_caps_; }
  const std::string &instructions() const noexcept { return instructions_; }
  ClientCaps caps() const noexcept { return caps_; }
  std::uint64_t session() const noexcept { return session_; }
  Upstream &upstream() const noexcept { return upstream_; }
  std::uint32_t restarts() const noexcept { return restarts_; }

  // The lane for which this lane is an additional connection that shares its calls; null if there
  // is none. An additional connection is in no view.
  Lane *pool_of = nullptr;

  void attach(Exchange &exchange) {
    exchange.lane = this;
    exchanges.push(exchange);
  }
  // The lane is finished with the exchange, which is about to be closed.
  void detach(Exchange &exchange) {
    exchanges.remove(exchange);
    exchange.lane = nullptr;
    if (exchange.sent && exchange.takes_place) --in_flight;
    exchange.sent = false;
  }

  LaneExchanges exchanges;
  std::uint32_t in_flight = 0;  // exchanges that were sent and count against the limit
  std::vector<View *> views;
  std::uint64_t idle_since_ns = 0;  // since when no view uses the lane; 0 while a view uses it
  int log_level_sent = -1;          // on the current connection
  // A call that has ended for its client while the server may still be working on it; see
  // Attribution.
  struct Retracted {
    std::uint64_t exchange, session, until_ns;
  };
  std::vector<Retracted> retracted;
  // The latest call that did not fit into `retracted`; session 0 means calls of several clients.
  Retracted forgotten{};
  // The subscribers of a resource, by the server's own URI. Limited to
  // limits.subscriptions_per_session for each client.
  struct Watch {
    struct Client {
      std::string token;         // the client's spelling of the URI
      std::uint64_t asking = 0;  // its call that the server has not yet answered
    };
    std::map<std::uint64_t, Client> clients;  // by session
    bool on = false;                          // the server has accepted a subscription
  };
  std::map<std::string, Watch, std::less<>> watches;

 protected:
  LaneHost &host_;
  Upstream &upstream_;
  const ClientCaps caps_;
  const std::uint64_t session_;  // 0: shared
  LaneState state_ = LaneState::idle;
  bool settled_ = false;
  bool listed_ = false;
  bool recalled_ = false;
  bool draining_ = false;
  std::string reason_;
  std::string instructions_;
  ServerCaps server_caps_;
  std::uint32_t restarts_ = 0;
  std::array<ItemList, item_kinds> items_;
};

}  // namespace bulkhead
