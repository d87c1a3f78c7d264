// The client stub of a telemetry plugin's link: makes the plugin of another process look to the
// recorder like one that accepts records, up to the limit of unacknowledged ones.
//
// Records that were not acknowledged when the process ended are sent to the next one. The stub
// never blocks: records that exceed its limits stay with the recorder, which limits and counts
// them.
//
// Owner: the Host. Thread: the reactor's.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/abi/ext/telemetry.h"
#include "link/channel.hpp"

namespace bulkhead::link {

class TelemetryClientStub;

class TelemetryEvents {
 public:
  virtual ~TelemetryEvents() = default;
  // There is capacity for more records, or needs() has changed; never called from inside batch().
  virtual void telemetry_taken() = 0;
  // Records below this number are committed. Only for a plugin that commits, and before
  // telemetry_taken().
  virtual void telemetry_committed(const TelemetryClientStub &stub, std::uint64_t below) = 0;
  // See PolicyEvents.
  virtual void process_unhealthy(const std::string &compartment) = 0;
};

class TelemetryClientStub {
 public:
  static constexpr std::size_t max_records = 4096;  // unacknowledged
  static constexpr std::uint64_t max_bytes = 8u << 20;
  // a larger batch is split
  static constexpr std::size_t frame_records = 256, frame_bytes = 256u << 10;
  static constexpr std::uint64_t silence_ms = 30'000;  // without an acknowledgement while records
                                                       // wait: the process is unresponsive
  static constexpr std::uint64_t needs_timeout_ms = 5'000;  // until then the plugin is treated as
                                                            // one that commits
  static constexpr std::size_t max_counters = 256;

  // `required`: the plugin is treated as one that commits until it, or expect(), reports otherwise.
  // If not required, it is so only for needs_timeout_ms, and not after give_up().
  TelemetryClientStub(Reactor &reactor, std::string compartment, bool required,
                      TelemetryEvents &events);
  ~TelemetryClientStub();
  TelemetryClientStub(const TelemetryClientStub &) = delete;
  TelemetryClientStub &operator=(const TelemetryClientStub &) = delete;

  void attach(OwnedFd trunk);
  void give_up(std::string reason);
  // Sets the needs that an earlier process of the plugin has reported. No effect once this process
  // has reported its own.
  void expect(std::uint32_t needs);

  // Records below this number are offered again after an endpoint was killed: the other process may
  // already have accepted them.
  void set_earlier_below(std::uint64_t number) noexcept { earlier_below_ = number; }
  // All records below this number have been acknowledged.
  std::uint64_t acknowledged_below() const noexcept { return acknowledged_; }

  // The table; its `self` is the TelemetryClientStub.
  static const bh_telemetry &table() noexcept;
  // Why no records are accepted; empty if they are, or if this is not known yet.
  const std::string &failure() const noexcept { return failure_; }
  // True if no record waits for the other process, or if no process is connected.
  bool idle() const noexcept { return kept_ == 0 || trunk_ == nullptr; }
  std::size_t kept() const noexcept { return kept_; }
  // The plugin's counters, as last received.
  const std::vector<std::pair<std::string, std::uint64_t>> &counters() const noexcept {
    return counters_;
  }

 private:
  struct Receiver;
  struct Place {
    std::uint64_t number;
    std::size_t begin;  // offset in `bytes`
  };
  // The content of one frame, kept until all of it is acknowledged.
  struct Kept {
    std::string bytes;  // archived RecordTexts
    std::vector<Place> places;
    std::size_t taken = 0;  // the number of acknowledged records
  };

  std::uint32_t batch(const bh_record *const *records, std::uint32_t n);
  bool full() const noexcept { return kept_ >= max_records || bytes_ >= max_bytes; }
  void send_from(std::size_t index);
  void on_frame(const Frame &frame, std::string_view payload);
  bool acknowledge(std::uint64_t number);
  void drop_front();
  bool take_counters(std::string_view payload);
  void lost();
  void assume_no_commits();
  void watch_silence();

  Reactor &reactor_;
  const std::string compartment_;
  const bool required_;
  TelemetryEvents &events_;
  const std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<Channel> trunk_;
  std::string failure_;
  // All bits until the plugin's needs are known; it may ignore what it does not need. Known needs
  // stay valid during a restart.
  std::uint32_t needs_ =
      BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS | BH_TELEMETRY_BLOCKS;
  bool needs_known_ = false;  // needs_ is known, from this process or an earlier one
  std::vector<std::pair<std::string, std::uint64_t>> counters_;
  std::deque<Kept> frames_;  // sent, or to be sent once a process is connected
  std::size_t kept_ = 0;     // unacknowledged records in them
  std::uint64_t bytes_ = 0;  // of all frames
  Kept spare_;               // the buffer of an acknowledged frame, for reuse
  std::uint64_t earlier_below_ = 0, acknowledged_ = 0;
  std::uint64_t last_ack_ns_ = 0;  // time of the last acknowledgement, or of the first send
  std::uint64_t timer_ = 0, needs_timer_ = 0;
};

}  // namespace bulkhead::link
