// The state of one parked call. A call is parked if its client uses revision 2026-07-28 and must be
// asked for input. An "ask" is a request of the server to the client, or an approval form of the
// gateway. The client receives the asks in rounds, as `inputRequests`, and answers a round by
// repeating its request.
//
// A call is in one of four phases:
//   working     the server is working, and no ask is open
//   collecting  asks have arrived, and more are collected for a short time
//   asked       the round has been closed: its asks were sent as the responses to the client's
//               waiting requests, and the call waits for the client's answers
//   ended       the call has ended, and its outcome (its "end") is stored for clients that repeat
//               their request
//
// If a repeated request has the same answers as the last answered round, nothing runs twice: the
// request joins the call and receives the next round or the end of the call. If the client answers
// only some of the asks in a round, its answers are passed on, and the remaining asks are sent
// again in the next round.
//
// ParkedInputs has the clock and the limits on all calls together. Used on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "mcp/value_digest.hpp"

namespace bulkhead {

// A request to the client, from the server or from the gateway.
struct ParkedAsk {
  std::uint64_t ask = 0;        // the caller's number for the ask
  std::string method;           // elicitation/create, sampling/createMessage or roots/list
  std::string params;           // JSON object; empty if absent
  std::uint64_t answer_ms = 0;  // how long the client may take for its answer
};

// Why a repeated request is rejected. The error code is always -32602.
enum class RetryFault : std::uint8_t {
  unknown_call,   // there is no such call, or it has ended and its end is no longer stored
  evicted,        // the call was cancelled to make room for a call on another connection
  outdated,       // the state belongs to neither the current nor the last answered round
  other_answers,  // the round was answered before, with other answers
  malformed,      // inputResponses is not an object, or a known key occurs twice or has no object
  too_many        // max_waiting requests of the client wait for this call
};
std::string_view to_string(RetryFault fault) noexcept;

class ParkedInput {
 public:
  static constexpr std::size_t max_asks = 16;       // open at the same time
  static constexpr std::uint32_t max_rounds = 100;  // of one call
  static constexpr std::size_t max_waiting = 4;     // requests of the client that wait

  enum class Phase : std::uint8_t { working, collecting, asked, ended };

  struct Answer {
    std::uint64_t ask = 0;
    std::string_view result;  // JSON object, a part of inputResponses
  };
  // The effect of a repeated request. If the call is now in phase `working` or `collecting`, the
  // request waits. Otherwise, the caller responds to it with the current round or with the end of
  // the call.
  struct Retry {
    std::vector<Answer> answers;  // for the server; empty if the request has joined the call
  };

  Phase phase() const noexcept { return phase_; }
  std::uint32_t round() const noexcept { return round_; }  // the last closed one; 0: none yet
  std::size_t asks() const noexcept { return asks_.size(); }
  std::size_t bytes() const noexcept;        // memory of the asks and the stored end
  std::uint64_t answer_ms() const noexcept;  // the longest answer_ms of the closed round's asks

  // Adds an ask. If the phase is `working`, it changes to `collecting`. Returns false if there are
  // already max_asks asks or max_rounds rounds, or if the call has ended.
  bool add_ask(ParkedAsk ask);
  // Called when the ask has ended for any reason. Returns false if there is no such ask. A round
  // that has already been closed still waits for the client, even if all of its asks have been
  // removed.
  bool remove_ask(std::uint64_t ask);
  // Closes the round that is being collected. If all of its asks have been removed, changes the
  // phase to `working` and returns false.
  bool close_round();
  // Returns the closed round as the JSON object `inputRequests`.
  std::string input_requests() const;

  // Called when the client repeats its request. `round` is the round in the request's state, and
  // `responses` is the request's inputResponses (JSON; empty if absent), which the result borrows.
  // Unknown keys are ignored. If no key is known and the round still has asks, the client is asked
  // again.
  std::expected<Retry, RetryFault> retry(std::uint64_t request, std::uint32_t round,
                                         std::string_view responses);

  // Ends the call and stores its end, which the caller has composed.
  void end(std::string text, std::uint32_t http_status = 0);
  const std::string &end_text() const noexcept { return end_; }
  std::uint32_t http_status() const noexcept { return http_status_; }  // of the end

  // ---- requests of the client that wait for the next round or the end ----
  void wait(std::uint64_t request) { waiting_.push_back(request); }
  bool leave(std::uint64_t request);
  std::vector<std::uint64_t> take_waiting() { return std::exchange(waiting_, {}); }
  bool is_awaited() const noexcept { return !waiting_.empty(); }
  std::uint64_t newest() const noexcept { return waiting_.empty() ? 0 : waiting_.back(); }

 private:
  struct Open : ParkedAsk {
    std::string key;
    std::uint32_t round = 0;  // in which it was sent to the client; 0: not yet
  };

  std::expected<Retry, RetryFault> first_answers(std::uint64_t request, std::string_view responses);
  std::expected<Retry, RetryFault> join(std::uint64_t request, std::string_view responses);
  std::expected<std::vector<Answer>, RetryFault> known_answers(std::string_view responses) const;
  bool has_ask_in_round() const noexcept;
  const Open *asked(std::string_view key) const;

  Phase phase_ = Phase::working;
  std::uint32_t round_ = 0;
  std::uint32_t answered_round_ = 0;
  std::uint32_t keys_ = 0;  // number of keys given to asks so far
  mcp::ValueDigest answered_{};
  std::vector<Open> asks_;
  std::vector<std::uint64_t> waiting_;
  std::string end_;
  std::uint32_t http_status_ = 0;
};

}  // namespace bulkhead
