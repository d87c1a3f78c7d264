// Holds responses until their records are committed, if a telemetry plugin requires this
// (BH_TELEMETRY_COMMITS). Preserves the order of the responses.
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
  // Soft limit: if it is exceeded, full() returns true, and the gateway refuses new requests.
  static constexpr std::size_t max_bytes = std::size_t{64} << 20;

  // Sends a response. If `withheld` is true, its record was not committed within
  // BH_TELEMETRY_COMMIT_MS, and the parts contain an error instead of the response. If `count` is
  // 0, the request is closed without a response.
  using Release = std::function<void(const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
                                     std::uint32_t http_status, bool withheld)>;
  HeldAnswers(Recorder &recorder, Reactor &reactor, Release release);
  ~HeldAnswers();
  HeldAnswers(const HeldAnswers &) = delete;
  HeldAnswers &operator=(const HeldAnswers &) = delete;

  bool must_hold() const;
  // `may_have_run` is true if a server may have executed the request. If the response is then
  // withheld, the error that replaces it mentions this.
  void hold(const ReplyTo &reply, const bh_str *parts, std::uint32_t count,
            std::uint32_t http_status, bool may_have_run);
  void release_committed();
  bool empty() const noexcept { return held_.empty(); }
  bool full() const noexcept { return bytes_ > max_bytes; }

 private:
  struct Held {
    std::uint64_t below;  // records with lower numbers must be committed first
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
