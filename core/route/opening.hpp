// Decides how to open one connection to a server. The lane sends the opening request of one
// protocol generation. If the server rejects it or does not respond, the lane sends the opening
// request of the other generation. The first valid response determines the generation. This class
// only decides; the lane sends the requests.
//
// Used on the reactor thread. Owned by the ServerOpening.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/result.hpp"
#include "route/server_edge.hpp"

namespace bulkhead {

class Opening {
 public:
  // If the server does not respond to server/discover within this time, initialize is sent.
  // ServerOpening uses another time over HTTP, or if the connect time-out is short.
  static constexpr std::uint64_t silence_ms = 1'000;

  // What the lane must do next: wait, send the opening request of edge(), or report error().
  enum class Step : std::uint8_t { wait, send, fail };

  // If `second` is null, there is no alternative to `first`.
  void begin(const ServerEdge &first, const ServerEdge *second) noexcept {
    attempts_ = {};
    attempts_[0].edge = &first;
    attempts_[1].edge = second;
    sent_ = 0;
    certain_ = true;
    repeated_ = false;
  }
  // Returns the edge whose opening request must be sent next. Valid only after begin(), after
  // Step::send, or after repeat() has returned true.
  const ServerEdge &edge() const noexcept { return *attempts_[sent_].edge; }
  // Called before the opening request of edge() is sent. `exchange` is the number of that request.
  void sending(std::uint64_t exchange) noexcept { attempts_[sent_++].exchange = exchange; }

  // Returns true if server/discover was sent as a probe. A server that does not know this method
  // may exit when it receives it.
  bool probing() const noexcept { return sent_ != 0 && second() && attempts_[0].edge->stateless(); }
  // Returns true if silent() must be called when the first request gets no response in time.
  bool watches_silence() const noexcept { return sent_ == 1 && probing(); }
  Step silent() noexcept { return watches_silence() ? Step::send : Step::wait; }

  // Called if the server rejects the first request although it supports the request's revision.
  // Returns true if the request must be sent again, which happens only once.
  bool repeat(std::uint64_t exchange) noexcept {
    if (repeated_ || sent_ != 1 || attempts_[0].exchange != exchange) return false;
    attempts_[0].exchange = 0;
    sent_ = 0;
    return repeated_ = true;
  }

  // What the rejection of an opening request shows about the server's protocol generation.
  enum class Refusal : std::uint8_t {
    no_generation,  // the server does not support the request's method or revision
    unclear,  // any other failure: the other request is tried, but the result is not remembered
    // Authentication or permission error, unavailable server or timeout: the other request would
    // fail, too.
    connection
  };
  Step refused(std::uint64_t exchange, Error error, Refusal why);

  const ServerEdge &edge_of(std::uint64_t exchange) const noexcept {
    return *attempts_[attempts_[1].exchange == exchange ? 1 : 0].edge;
  }
  // Returns the exchange of the other opening request if it is still pending, and 0 otherwise.
  std::uint64_t other_than(std::uint64_t exchange) const noexcept;
  // Returns true if the result is certain enough to be stored for later connections.
  bool certain() const noexcept { return certain_; }
  // Returns the error to report after Step::fail.
  Error error() const;

 private:
  struct Attempt {
    const ServerEdge *edge = nullptr;
    std::uint64_t exchange = 0;  // 0 if not sent
    bool ended = false;
    Error error{};
  };
  bool second() const noexcept { return attempts_[1].edge != nullptr; }

  std::array<Attempt, 2> attempts_;
  std::size_t sent_ = 0;
  bool certain_ = true;
  bool repeated_ = false;
};

}  // namespace bulkhead
