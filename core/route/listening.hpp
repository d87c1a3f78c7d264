// Manages a lane's subscriptions/listen request, with which the gateway selects the changes that a
// server of revision 2026-07-28 reports. The request covers all lists whose changes the server can
// report, and all resources that clients of the lane watch.
//
// If the set of watched resources changes, a new request is opened. The old request is closed as
// soon as the server has acknowledged the new one. If a request ends, another one is opened after
// retry_ms. The delay doubles after each failure, up to retry_max_ms, and has random jitter.
//
// Used on the I/O thread. Owned by the lane.
#pragma once

#include <cstdint>
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

  // What the lane does.
  class Wire {
   public:
    virtual ~Wire() = default;
    virtual std::vector<std::string> watched() const = 0;
    // Sends a listen request with this filter (a JSON object). Returns the request's exchange, or 0
    // if the request could not be sent.
    virtual std::uint64_t send_listen(const std::string &filter) = 0;
    // Ends the listen request and notifies the server.
    virtual void end_listen(std::uint64_t exchange) = 0;
    // Called when a listen request is open again after an interruption. Changes may have been
    // missed in the meantime.
    virtual void changes_missed() = 0;
    // Called when a client's resources/subscribe request has been accepted or rejected. `exchange`
    // is the exchange of that request.
    virtual void subscribed(std::uint64_t exchange, bool accepted) = 0;
  };

  Listening(Reactor &reactor, Wire &wire) : reactor_(reactor), wire_(wire) {}
  ~Listening() { stop(); }
  Listening(const Listening &) = delete;
  Listening &operator=(const Listening &) = delete;

  // Called when a connection to a server with these capabilities has been opened.
  void start(const ServerCaps &caps);
  // Called when the connection has ended.
  void stop();
  // Called when a client subscribes to a resource. `exchange` is the exchange of the client's
  // request. Wire::watched() must already contain the URI.
  void subscribe(std::uint64_t exchange, std::string uri);
  // Called when the set of watched resources has changed.
  void watches_changed();
  // Returns true if the server currently reports changes of its list of this kind.
  bool reports(ItemKind kind) const noexcept;

  // ---- from the server ----
  // `id` is the subscription's; `accepted` is the accepted part of the filter, a JSON object.
  void acknowledged(std::uint64_t id, std::string_view accepted);
  // Called when a listen request has ended. `lasting` is true if the server does not support
  // subscriptions/listen. In that case, no other request is opened.
  void ended(std::uint64_t exchange, bool lasting);

 private:
  struct Waiting {
    std::uint64_t exchange = 0;  // of the client's request
    std::string uri;
    std::uint64_t request = 0;  // that asks for it; 0: not sent yet
  };

  std::string filter() const;
  void open();
  void open_after(std::uint64_t ms);
  void settle(std::uint64_t request, const std::vector<std::string> &accepted);

  Reactor &reactor_;
  Wire &wire_;
  ServerCaps caps_{};
  bool started_ = false;
  bool missed_ = false;        // a request has ended
  std::uint64_t current_ = 0;  // acknowledged
  // The lists whose changes the current request covers.
  struct {
    bool tools = false, resources = false, prompts = false;
  } reported_;
  std::uint64_t opening_ = 0;   // not acknowledged yet
  std::uint32_t failures_ = 0;  // since the last acknowledgement
  std::uint64_t timer_ = 0;
  std::string asked_;  // the filter of the newest request
  std::vector<Waiting> waiting_;
};

}  // namespace bulkhead
