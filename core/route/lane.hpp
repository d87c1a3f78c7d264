// A lane: the conversation with one server for one group of clients. A lane outlives its
// connections. If a connection is lost, the lane reconnects, and its clients continue to use the
// same names.
//
// Owner: the Upstream. Runs on the reactor thread.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/tools.h"
#include "catalog/items.hpp"
#include "mcp/scan.hpp"
#include "route/call.hpp"
#include "route/exchange.hpp"
#include "route/lane_host.hpp"
#include "route/list_hints.hpp"
#include "route/protocol.hpp"
#include "route/task_notes.hpp"

namespace bulkhead {

class Upstream;
struct View;

enum class LaneState : std::uint8_t {
  idle,        // not started, or a lazy server that was stopped because it was idle
  connecting,  // opening the connection, in the handshake, or in the first listing
  ready,
  waiting,  // failed; a timer, a call or, for a tools plugin, a changed list can start it again
  closed    // permanently
};

// Why an exchange is retracted.
struct Retraction {
  std::uint32_t reason = BH_CANCEL_OTHER;  // BH_CANCEL_...
  // With BH_CANCEL_CLIENT: the client's cancelled notification.
  std::string_view notification{};
  const mcp::Scan *scan = nullptr;
};

class Lane {
 public:
  Lane(LaneHost &host, Upstream &upstream, ClientCaps caps, std::uint64_t session)
      : host_(host), upstream_(upstream), caps_(caps), session_(session) {}
  virtual ~Lane() = default;
  Lane(const Lane &) = delete;
  Lane &operator=(const Lane &) = delete;

  virtual void start() = 0;
  // Closes the lane permanently. The lane of a connector fails the calls that are still on it. The
  // lane of a tools plugin must not have any calls.
  virtual void close() = 0;

  // Sends the exchange, queues it (up to a limit) or fails its call. The exchange may have ended
  // when this function returns.
  virtual void submit(Exchange &exchange, const CallInHand &hand) = 0;
  // Notifies the server that an exchange was cancelled, timed out or lost its client. The exchange
  // must already have been detached. If `sent` is false, only removes it from the queue.
  virtual void retract(std::uint64_t exchange, bool sent, const Retraction &why) = 0;
  // Called when the response to the exchange is no longer needed. The server is not notified.
  virtual void abandon(std::uint64_t exchange) = 0;
  // Returns the current connection's handle, or 0 if there is no connection or the lane does not
  // need one.
  virtual bh_lane handle() const noexcept { return 0; }
  // Called when one of this lane's exchanges has ended. Sends queued calls, up to the server's
  // limit.
  virtual void pump() {}
  // Sends a notification or a response. It is dropped if there is no connection.
  virtual void send(std::uint32_t kind, const bh_str *parts, std::uint32_t count) = 0;
  // Returns false if the server's protocol generation does not have this method.
  virtual bool takes(mcp::Method) const { return true; }
  // Sends a request on behalf of all clients of this lane, if the lane is ready and the server
  // supports the request. The response is discarded. If the server has no sessions, a subscription
  // request updates subscriptions/listen instead.
  virtual void request_quietly(mcp::Method method, std::string_view params) = 0;
  // Called when the server was removed from the profile or changed. In-flight calls may finish, no
  // new calls are accepted, and a lost connection is not replaced.
  void drain() noexcept { draining_ = true; }
  bool draining() const noexcept { return draining_; }
  // Keeps the items of the given lane, which this lane replaces, listed for limits.grace_ms. The
  // tools of a server that restarts quickly therefore stay listed. Must be called before start().
  virtual void inherit(const Lane &) {}
  // Called when the server's definition has changed in a way that does not require a new connection
  // (tool lists, limits).
  virtual void redefined() {}
  // Returns true if the server has accepted the opening request of the current connection, so
  // notifications can be sent.
  virtual bool opened() const { return state_ == LaneState::ready; }
  // Returns the MCP revision of the current connection, or an empty string if there is none.
  virtual std::string_view revision() const noexcept { return {}; }
  // Returns the caching hints of the list of this kind, or nullopt if the server has no such list.
  virtual std::optional<ListHints> list_hints(ItemKind, std::uint64_t now_ns) const {
    static_cast<void>(now_ns);
    return ListHints{};
  }
  // Requests the list of this kind from the server again if it is out of date. Clients are notified
  // if it has changed.
  virtual void refresh(ItemKind, std::uint64_t now_ns) { static_cast<void>(now_ns); }
  // Returns true if the server starts at first use rather than with the gateway.
  virtual bool lazy() const { return false; }
  // Returns true if the server is lazy and not running, a call may start it, and its lists will be
  // unknown until it starts.
  virtual bool unknown() const { return false; }
  // Lists the server's stored items, if any. Must be called before start() or settle_unstarted().
  virtual void recall() {}
  // Marks the lane as settled although its server, which is lazy, has not been started.
  void settle_unstarted() noexcept { settled_ = true; }
  // Called before the lane is started, so that clients wait for its list.
  void expect() noexcept { settled_ = false; }
  // Returns true if the server is lazy and will not be connected until a request needs it.
  bool sleeps() const noexcept { return state_ == LaneState::idle && settled_; }
  bool can_take_calls() const noexcept { return state_ == LaneState::ready || sleeps(); }

  LaneState state() const noexcept { return state_; }
  // Returns true if the first connection attempt since start() or expect() has succeeded or failed,
  // or if the server is lazy and was not started; see settle_unstarted().
  bool settled() const noexcept { return settled_; }
  // Returns true if the lane's items are listed: the lane is ready, its stored or inherited items
  // are shown, or it is a lazy server that was stopped. After a failure, the items of a server that
  // is not lazy, or that has failed repeatedly, stay listed for limits.grace_ms.
  bool listed() const noexcept { return listed_; }
  // Returns true if the listed items come from storage, because the lane has not been ready yet.
  bool recalled() const noexcept { return recalled_; }
  const std::string &reason() const noexcept { return reason_; }
  const ItemList &items(ItemKind kind) const { return items_[static_cast<std::size_t>(kind)]; }
  const ServerCaps &server_caps() const noexcept { return server_caps_; }
  const std::string &instructions() const noexcept { return instructions_; }
  ClientCaps caps() const noexcept { return caps_; }
  std::uint64_t session() const noexcept { return session_; }
  Upstream &upstream() const noexcept { return upstream_; }
  std::uint32_t restarts() const noexcept { return restarts_; }

  // If this lane is an additional connection in a pool, the lane whose calls it shares; otherwise
  // null. An additional connection does not appear in any view.
  Lane *pool_of = nullptr;

  void attach(Exchange &exchange) {
    exchange.lane = this;
    exchanges.push(exchange);
  }
  // Releases the exchange, which is about to be closed.
  void detach(Exchange &exchange) {
    exchanges.remove(exchange);
    exchange.lane = nullptr;
    if (exchange.sent && exchange.takes_place) --in_flight;
    exchange.sent = false;
  }

  LaneExchanges exchanges;
  std::uint32_t in_flight = 0;  // sent exchanges that count against the limit
  std::vector<View *> views;
  std::uint64_t idle_since_ns = 0;  // time since which no view uses the lane, or 0
  int log_level_sent = -1;          // set on the current connection; -1: none
  // A call that has ended for its client, but on which the server may still be working; see
  // Attribution. `session` identifies the client: it is the client's session, or the scope of its
  // sessionless requests (RequestScopes).
  struct Retracted {
    std::uint64_t exchange, session, until_ns;
  };
  std::vector<Retracted> retracted;
  // The entry most recently removed from `retracted` because the list was full. If `session` is 0,
  // the removed entries belonged to several clients.
  Retracted forgotten{};
  TaskNotes task_notes;  // of the current connection
  // The subscribers of one resource. `watches` is keyed by the URI that the server uses. Each
  // client can have at most limits.subscriptions_per_session entries.
  struct Watch {
    struct Client {
      std::string token;         // the client's form of the URI
      std::uint64_t asking = 0;  // its call that the server has not yet answered
    };
    std::map<std::uint64_t, Client> clients;  // by session
    // The server has accepted a subscription, perhaps on an earlier connection.
    bool on = false;
    // The newest subscriptions/listen request that contains the resource, or 0.
    std::uint64_t listen = 0;
  };
  std::map<std::string, Watch, std::less<>> watches;
  // Returns true if the server reports updates of the watched resource now.
  virtual bool reports(const Watch &watch) const { return watch.on; }

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

// Returns true if the lane lists the item with the definition for which it was resolved.
inline bool lists_definition(const Lane &lane, const Resolved &resolved) {
  return lane.items(resolved.kind).find(resolved.definition_hash, resolved.item) != nullptr;
}

}  // namespace bulkhead
