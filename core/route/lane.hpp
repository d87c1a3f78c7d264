// A lane: the conversation with one server for one group of clients. A lane outlives its
// connections: if one is lost, the lane reconnects and its clients keep their names for it.
//
// Thread: I/O thread. Owned by the Upstream.
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
  connecting,  // opening, in the handshake or the first listing
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
  // Closes the lane permanently. Its calls have been detached before.
  virtual void close() = 0;

  // Sends the exchange, queues it (limited) or fails its call. The exchange may have ended when
  // this returns.
  virtual void submit(Exchange &exchange, const CallInHand &hand) = 0;
  // Notifies the server that an exchange was cancelled, timed out or lost its client. The exchange
  // has been detached before. `reason`: the client's cancelled notification; empty: there is none.
  virtual void retract(std::uint64_t exchange, bool sent, std::string_view reason,
                       const mcp::Scan *reason_scan) = 0;
  // The answer of this exchange is no longer awaited; the server is not notified.
  virtual void abandon(std::uint64_t exchange) = 0;
  // The handle of the present connection; 0: there is none, or the lane needs none.
  virtual bh_lane handle() const noexcept { return 0; }
  // An exchange of this lane has ended: sends the next queued call.
  virtual void pump() {}
  // Sends a notification or a response; it is dropped if there is no connection.
  virtual void send(std::uint32_t kind, const bh_str *parts, std::uint32_t count) = 0;
  // Sends a request on behalf of all clients of this lane; its answer is discarded.
  virtual void request_quietly(mcp::Method method, std::string_view params) = 0;
  // The server was removed from the profile or changed: calls in flight may finish, no new call
  // arrives, and a lost connection is not replaced.
  void drain() noexcept { draining_ = true; }
  bool draining() const noexcept { return draining_; }
  // Shows the list of the lane that this one replaces for limits.grace_ms, so that the tools of a
  // server that restarts quickly stay listed. Call it before start().
  virtual void inherit(const Lane &) {}
  // The definition has changed in a way that needs no new connection: tool lists, limits.
  virtual void redefined() {}
  // The server has the client's `initialized`: notifications can be sent.
  virtual bool opened() const { return state_ == LaneState::ready; }
  // The server is started on first use, not with the gateway.
  virtual bool lazy() const { return false; }
  // The server is lazy, not running, and its lists are unknown: starting it may reveal them.
  virtual bool unknown() const { return false; }
  // Shows the remembered list of a lazy server, if there is one. Call it before settle_unstarted().
  virtual void recall() {}
  // A lazy server that is not started counts as settled.
  void settle_unstarted() noexcept { settled_ = true; }
  // The lane is about to be started: clients wait for its list.
  void expect() noexcept { settled_ = false; }
  // The server is lazy and not connected until the next call.
  bool sleeps() const noexcept { return state_ == LaneState::idle && settled_; }
  bool can_take_calls() const noexcept { return state_ == LaneState::ready || sleeps(); }

  LaneState state() const noexcept { return state_; }
  // The first attempt to connect has succeeded or failed.
  bool settled() const noexcept { return settled_; }
  // The lane's items are in the lists: it is ready, or was within limits.grace_ms.
  bool listed() const noexcept { return listed_; }
  // The listed items are remembered; the server has not listed them in this life.
  bool recalled() const noexcept { return recalled_; }
  const std::string &reason() const noexcept { return reason_; }
  const ItemList &items(ItemKind kind) const { return items_[static_cast<std::size_t>(kind)]; }
  const ServerCaps &server_caps() const noexcept { return server_caps_; }
  const std::string &instructions() const noexcept { return instructions_; }
  ClientCaps caps() const noexcept { return caps_; }
  std::uint64_t session() const noexcept { return session_; }
  Upstream &upstream() const noexcept { return upstream_; }
  std::uint32_t restarts() const noexcept { return restarts_; }

  // Of a connection that only shares calls of another's: that one. It is in no view.
  Lane *pool_of = nullptr;

  void attach(Exchange &exchange) {
    exchange.lane = this;
    exchanges.push(exchange);
  }
  // The lane has nothing more to do with the exchange, which is about to be closed.
  void detach(Exchange &exchange) {
    exchanges.remove(exchange);
    exchange.lane = nullptr;
    if (exchange.sent && exchange.takes_place) --in_flight;
    exchange.sent = false;
  }

  LaneExchanges exchanges;
  std::uint32_t in_flight = 0;  // exchanges that were sent and take a place
  std::vector<View *> views;
  std::uint64_t idle_since_ns = 0;  // since when no view uses the lane; 0: a view does
  int log_level_sent = -1;          // on the present connection
  // A call that has ended for its client while the server may still work on it; see Attribution.
  struct Retracted {
    std::uint64_t exchange, session, until_ns;
  };
  std::vector<Retracted> retracted;
  // The latest call that did not fit into `retracted`; session 0: calls of several clients.
  Retracted forgotten{};
  // The subscribers of a resource, by the server's own URI. At most
  // limits.subscriptions_per_session of each client.
  struct Watch {
    struct Client {
      std::string token;         // the client's spelling of the URI
      std::uint64_t asking = 0;  // its call that the server has not answered yet
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
