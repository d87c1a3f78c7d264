// The request subscriptions/listen of a lane: which changes the server of revision 2026-07-28
// reports. It asks for the kinds of lists whose changes the server announces, and for all resources
// that clients of the lane watch. If these resources change, a new request is opened and, when the
// server has acknowledged it, the old one is closed. A request that ends is opened again after
// retry_ms, doubled at each failure up to retry_max_ms, with jitter.
//
// Used on the I/O thread. Owned by the lane.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reactor/reactor.hpp"
#include "route/protocol.hpp"

namespace bulkhead {

class Listening {
 public:
  static constexpr std::uint64_t retry_ms = 1'000, retry_max_ms = 60'000;
  // Changes of the watched resources within this time cause one request.
  static constexpr std::uint64_t collect_ms = 10;

  // What the lane does.
  class Wire {
   public:
    virtual ~Wire() = default;
    virtual std::vector<std::string> watched() const = 0;
    // Sends the request with this filter (JSON object). Returns its exchange; 0 if there is none.
    virtual std::uint64_t send_listen(const std::string &filter) = 0;
    // The server is notified that the request has ended.
    virtual void end_listen(std::uint64_t exchange) = 0;
    // Changes may not have been reported while there was no request.
    virtual void changes_missed() = 0;
    // The exchange of a client's resources/subscribe has an answer.
    virtual void subscribed(std::uint64_t exchange, bool accepted) = 0;
  };

  Listening(Reactor &reactor, Wire &wire) : reactor_(reactor), wire_(wire) {}
  ~Listening() { stop(); }
  Listening(const Listening &) = delete;
  Listening &operator=(const Listening &) = delete;

  // A connection to a server with these capabilities is open.
  void start(const ServerCaps &caps);
  // The connection has ended.
  void stop();
  // A client subscribes with this exchange. The URI is watched already.
  void subscribe(std::uint64_t exchange, std::string uri);
  // Resources are no longer watched, or are watched again.
  void watches_changed();

  // ---- from the server ----
  // `id` is the subscription's; `accepted` is the accepted part of the filter, a JSON object.
  void acknowledged(std::uint64_t id, std::string_view accepted);
  // The request has ended. lasting: the server does not have the method.
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
  bool missed_ = false;         // a request has ended
  std::uint64_t current_ = 0;   // acknowledged
  std::uint64_t opening_ = 0;   // not acknowledged yet
  std::uint32_t failures_ = 0;  // since the last acknowledgement
  std::uint64_t timer_ = 0;
  std::string asked_;  // the filter of the newest request
  std::vector<Waiting> waiting_;
};

}  // namespace bulkhead
