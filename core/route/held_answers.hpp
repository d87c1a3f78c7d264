// Answers that are held until their records are committed, if a telemetry plugin requires this
// (BH_TELEMETRY_COMMITS). Answers are sent in order of arrival.
//
// Owner: ClientAnswers. Runs on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "bulkhead/abi/core.h"
#include "reactor/reactor.hpp"
#include "route/recorder.hpp"
#include "route/reply_to.hpp"

namespace bulkhead {

class HeldAnswers {
 public:
  // If this limit is exceeded, new requests are refused; see full().
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;

  // Sends an answer. If `withheld` is true, the answer's record was not committed within
  // BH_TELEMETRY_COMMIT_MS, and an error replaces the answer. If there are no parts, the request
  // has ended without an answer.
  using Release = std::function<void(const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
                                     std::uint32_t http_status, bool withheld)>;
  HeldAnswers(Recorder &recorder, Reactor &reactor, Release release);
  ~HeldAnswers();
  HeldAnswers(const HeldAnswers &) = delete;
  HeldAnswers &operator=(const HeldAnswers &) = delete;

  // Returns true if a new answer must be held.
  bool must_hold() const;
  // may_have_run is true if a server may have executed the request, which the error then reports.
  void hold(const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
            std::uint32_t http_status, bool may_have_run);
  // Sends the answers whose records have been committed.
  void release_committed();
  bool empty() const noexcept { return held_.empty(); }
  bool full() const noexcept { return bytes_ > max_bytes; }

 private:
  struct Held {
    std::uint64_t below;  // all records below this number must be committed
    ReplyTo reply;
    std::string text;
    std::uint32_t http_status;
    std::uint64_t since_ns;
    bool has_text;
    bool may_have_run;
  };
  Held take();
  void release(const Held &held, bool withheld) const;
  void start_timer();
  void expire();

  Recorder &recorder_;
  Reactor &reactor_;
  const Release release_;
  std::deque<Held> held_;
  std::size_t bytes_ = 0;
  std::uint64_t timer_ = 0;
};

}  // namespace bulkhead
