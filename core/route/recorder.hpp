// Records of ended exchanges, handed to telemetry plugins in batches. Owner: the Router.
// Thread: [io]. Without a telemetry plugin nothing is kept.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/abi/ext/telemetry.h"
#include "reactor/reactor.hpp"
#include "route/exchange.hpp"

namespace bulkhead {

class Recorder {
 public:
  static constexpr std::size_t max_waiting = 10'000;  // beyond: dropped and counted
  static constexpr std::uint64_t flush_ms = 200;
  static constexpr std::uint32_t batch_size = 256;
  static constexpr std::size_t max_text = 1024;  // of name, rule and error

  explicit Recorder(Reactor &reactor);
  ~Recorder();

  void add_sink(const bh_telemetry *table, void *self) { sinks_.push_back({table, self, 0}); }
  bool active() const noexcept { return !sinks_.empty(); }

  void record(const Exchange &exchange, std::uint32_t outcome, std::uint64_t now_ns,
              std::uint64_t bytes_out, std::string_view rule, std::string_view error);
  // Offers what waits, now: when a sink may take more, and at the end.
  void flush();
  std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  struct Entry {
    bh_record facts{};
    std::string transport, peer, principal, process_name, method, server, name, rule, error;
  };
  struct Sink {
    const bh_telemetry *table;
    void *self;
    std::uint64_t taken;  // records before this number are its past
  };
  void offer(Sink &sink);
  void drop_taken();
  void start_timer();

  Reactor &reactor_;
  std::vector<Sink> sinks_;
  std::deque<Entry> waiting_;
  std::uint64_t first_;  // number of waiting_.front()
  std::uint64_t dropped_ = 0;
  std::uint64_t timer_ = 0;
};

}  // namespace bulkhead
