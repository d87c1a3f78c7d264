// The opening of one connection: the first request, and a second one of the other protocol
// generation if the server refuses the first or is silent. The first valid answer decides. This
// class only decides; the lane sends.
//
// Used on the I/O thread. Owned by the lane.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "base/result.hpp"
#include "route/server_edge.hpp"

namespace bulkhead {

class Opening {
 public:
  // A server that does not answer server/discover gets initialize after this time.
  static constexpr std::uint64_t silence_ms = 1'000;

  // What the lane does next: nothing, send the request of edge(), or give up with error().
  enum class Step : std::uint8_t { wait, send, fail };

  // `second` is null if there is only one edge to try.
  void begin(const ServerEdge &first, const ServerEdge *second) noexcept {
    attempts_ = {};
    attempts_[0].edge = &first;
    attempts_[1].edge = second;
    sent_ = 0;
    certain_ = true;
    repeated_ = false;
  }
  const ServerEdge &edge() const noexcept { return *attempts_[sent_].edge; }
  // The request of edge() is about to be sent as this exchange.
  void sending(std::uint64_t exchange) noexcept { attempts_[sent_++].exchange = exchange; }

  // Returns true if a server that ends now may have ended because of server/discover.
  bool probing() const noexcept { return sent_ != 0 && second() && attempts_[0].edge->stateless(); }
  // Returns true if silence_ms of silence must be followed by silent().
  bool watches_silence() const noexcept { return sent_ == 1 && probing(); }
  Step silent() noexcept { return watches_silence() ? Step::send : Step::wait; }

  // The server has refused the first request although it supports the request's revision. Returns
  // true, once, if the request is sent again.
  bool repeat(std::uint64_t exchange) noexcept {
    if (repeated_ || sent_ != 1 || attempts_[0].exchange != exchange) return false;
    attempts_[0].exchange = 0;
    sent_ = 0;
    return repeated_ = true;
  }

  // How much a failed request says about the server's generation.
  enum class Refusal : std::uint8_t {
    no_generation,  // the server does not have the method, or not this revision
    unclear,        // another failure: the other generation is tried, and nothing is concluded
    connection      // authentication, unavailability, a time-out: the other one would fail as well
  };
  Step refused(std::uint64_t exchange, Error error, Refusal why);

  const ServerEdge &edge_of(std::uint64_t exchange) const noexcept {
    return *attempts_[attempts_[1].exchange == exchange ? 1 : 0].edge;
  }
  // The exchange of the other request, if it was sent and has not ended; 0 otherwise.
  std::uint64_t other_than(std::uint64_t exchange) const noexcept;
  // Returns true if the accepted generation can be remembered.
  bool certain() const noexcept { return certain_; }
  // After Step::fail.
  Error error() const;

 private:
  struct Attempt {
    const ServerEdge *edge = nullptr;
    std::uint64_t exchange = 0;  // 0: not sent
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
