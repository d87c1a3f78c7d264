// Manages a lane's subscriptions/listen request, with which the gateway selects the changes that a
// server of revision 2026-07-28 reports. The request covers all lists whose changes the server can
// report, and all resources that clients of the lane watch.
//
// If the set of watched resources changes, a new request is opened. The old request is closed as
// soon as the server has acknowledged the new one. If a request ends, another one is opened after
// retry_ms. The delay doubles after each failure, up to retry_max_ms, and has random jitter.
// Clients cannot shorten or extend the delay: while it is running, changes to the set of watched
// resources have no effect on it.
//
// Keeps no list of the client requests that wait for the server's acknowledgement: they are
// exchanges of the lane, so limits.in_flight_per_session applies to them.
//
// Used on the reactor thread. Owned by the lane.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/items.hpp"
#include "reactor/reactor.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

class Listening {
 public:
  static constexpr std::uint64_t retry_ms = 1'000, retry_max_ms = 60'000;
  // If the set of watched resources changes, the new request is sent after this delay, so that
  // several changes require only one request.
  static constexpr std::uint64_t collect_ms = 10;
  // A request that the server has not acknowledged yet is replaced after this delay. Otherwise, a
  // client whose resources change all the time could prevent every acknowledgement.
  static constexpr std::uint64_t replace_ms = 1'000;

  // Implemented by the lane.
  class Wire {
   public:
    virtual ~Wire() = default;
    virtual std::vector<std::string> watched() const = 0;
    // Sends a listen request with this filter (a JSON object). Sets *exchange before that, because
    // the server's messages may arrive during the call. Returns false if no exchange is available.
    virtual bool send_listen(const std::string &filter, std::uint64_t *exchange) = 0;
    // Ends the listen request and notifies the server.
    virtual void end_listen(std::uint64_t exchange) = 0;
    // Called at an acknowledgement if changes may have been missed. `interrupted` is true if an
    // earlier request of this connection has ended or failed while no other one was acknowledged.
    // Otherwise, this is the first acknowledgement on the connection.
    virtual void changes_missed(bool interrupted) = 0;
    // Called when the server has acknowledged the request. `uris` is the JSON array of the
    // resources that the server has accepted. Any other value means that it has accepted none.
    // Also called with exchange 0 if nothing is left to listen for.
    virtual void accepted(std::uint64_t exchange, std::string_view uris) = 0;
    // Called when the request has ended before the server has acknowledged it.
    virtual void rejected(std::uint64_t exchange, std::string_view reason) = 0;
  };

  Listening(Reactor &reactor, Wire &wire) : reactor_(reactor), wire_(wire) {}
  ~Listening() { stop(); }
  Listening(const Listening &) = delete;
  Listening &operator=(const Listening &) = delete;

  // Called when a connection to a server with these capabilities has been opened.
  void start(const ServerCaps &caps);
  // Called when the connection has ended.
  void stop();
  // Called when a client subscribes to a resource that the server has not accepted.
  // Wire::watched() must already contain its URI. `asked` is the newest listen request that
  // contains the URI, or 0.
  void subscribe(std::uint64_t asked);
  // Called when the set of watched resources has changed.
  void watches_changed();
  // Returns true if the server has acknowledged a request that is still open.
  bool is_open() const noexcept { return current_ != 0; }
  // Returns true if the server currently reports changes of its list of this kind.
  bool reports(ItemKind kind) const noexcept;

  // ---- from the server ----
  // `id` is the subscription id, which is the exchange of the listen request. `accepted` is the
  // accepted part of the filter, a JSON object.
  void acknowledged(std::uint64_t id, std::string_view accepted);
  // Called when a listen request has ended. `lasting` is true if the server does not support
  // subscriptions/listen. In that case, no other request is opened until the set of watched
  // resources changes.
  void ended(std::uint64_t exchange, bool lasting, std::string_view reason);

 private:
  std::string filter() const;
  void open();
  void open_after(std::uint64_t ms);
  void interrupted(bool lasting);

  Reactor &reactor_;
  Wire &wire_;
  ServerCaps caps_{};
  bool started_ = false;
  bool missed_ = false;        // a request has ended or failed while no other was acknowledged
  bool first_ = true;          // no request of this connection has been acknowledged
  std::uint64_t current_ = 0;  // acknowledged
  // The lists whose changes the server reports, according to its latest acknowledgement.
  struct {
    bool tools = false, resources = false, prompts = false;
  } reported_;
  std::uint64_t opening_ = 0;   // not acknowledged yet
  std::uint32_t failures_ = 0;  // since the last acknowledgement
  std::uint64_t timer_ = 0;
  // The filter of the newest request; empty if there is nothing to listen for, and nullopt if the
  // request must be sent again.
  std::optional<std::string> asked_;
};

}  // namespace bulkhead
