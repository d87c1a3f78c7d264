// A lane: the conversation with one upstream for one group of clients. It outlives its connections:
// when one is lost, the lane reconnects and its clients keep their names for it.
//
// Owner: the Upstream. Thread: [io].
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
  connecting,  // opened, handshake or first listing under way
  ready,
  waiting,  // failed; the next attempt is timed
  closed    // for good
};

class Lane {
 public:
  Lane(LaneHost &host, Upstream &upstream, ClientCaps caps, std::uint64_t session)
      : host_(host), upstream_(upstream), caps_(caps), session_(session) {}
  virtual ~Lane() = default;
  Lane(const Lane &) = delete;
  Lane &operator=(const Lane &) = delete;

  virtual void start() = 0;
  // Ends the lane for good; its exchanges have been taken off before.
  virtual void close() = 0;

  // Sends, queues (bounded) or answers the exchange with an error. The exchange may have ended when
  // this returns.
  virtual void submit(Exchange &exchange, const CallInHand &hand) = 0;
  // The exchange has been taken off this lane by its client's end, a cancellation or a time-out:
  // tell the upstream. `reason` is the client's own cancelled notification, empty otherwise.
  virtual void retract(std::uint64_t exchange, bool sent, std::string_view reason,
                       const mcp::Scan *reason_scan) = 0;
  // Nobody waits for this exchange's answer any more; the upstream is not told.
  virtual void abandon(std::uint64_t exchange) = 0;
  // Of the present connection; 0: none, or it needs none.
  virtual bh_lane handle() const noexcept { return 0; }
  // An exchange of this lane has ended: sends what waits for its place.
  virtual void pump() {}
  // A notification or a response for the upstream; dropped where there is no connection.
  virtual void send(std::uint32_t kind, const bh_str *parts, std::uint32_t count) = 0;
  // A request on behalf of all clients of this lane, whose answer nobody waits for.
  virtual void request_quietly(mcp::Method method, std::string_view params) = 0;
  // The server has been taken out of the profile or changed: what is under way may finish, nothing
  // new comes, and a connection that is lost is not made again.
  void drain() noexcept { draining_ = true; }
  bool draining() const noexcept { return draining_; }
  // Begins with what this lane of the server's former definition has listed, for grace_ms: a server
  // that is there again in a moment does not go for it. Before start().
  virtual void inherit(const Lane &) {}
  // The definition has changed in what needs no new connection: tool lists, bounds.
  virtual void redefined() {}
  // Whether it would be started with the gateway; else it is left alone until it is needed.
  virtual bool lazy() const { return false; }
  // Lazy, not running, and what it lists is not known (yet): starting it may tell.
  virtual bool unknown() const { return false; }
  // A lazy one lists what its server listed when it last ran, if that is known. Before
  // leave_alone().
  virtual void recall() {}
  // A lazy one that is left alone counts as settled.
  void leave_alone() noexcept { settled_ = true; }
  // It is about to be started: what it lists is waited for.
  void expect() noexcept { settled_ = false; }
  // Lazy, and without a connection until the next call.
  bool sleeps() const noexcept { return state_ == LaneState::idle && settled_; }
  bool can_take_calls() const noexcept { return state_ == LaneState::ready || sleeps(); }

  LaneState state() const noexcept { return state_; }
  // The first attempt has come to an end, one way or the other.
  bool settled() const noexcept { return settled_; }
  // Its items are in the lists: it is ready, or was until a moment ago.
  bool listed() const noexcept { return listed_; }
  // What it lists is remembered of an earlier life of its server, which has not said it again yet.
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
  std::uint64_t idle_since_ns = 0;  // no view uses it since then; 0: one does
  int log_level_sent = -1;          // on the present connection
  // Calls that ended for their client while the server may still work on them; see Attribution.
  struct Retracted {
    std::uint64_t exchange, session, until_ns;
  };
  std::vector<Retracted> retracted;
  // Of those that had no place there, the latest; session 0: of several clients.
  Retracted forgotten{};
  // Who watches a resource of this server, by the server's own URI. Kept by the router; at most
  // limits.subscriptions_per_session of each client.
  struct Watch {
    struct Client {
      std::string token;         // the client's spelling of the URI
      std::uint64_t asking = 0;  // its request that the server has not answered yet
    };
    std::map<std::uint64_t, Client> clients;  // by session
    bool on = false;                          // the server has agreed, to one of them
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
