// The client stub of a telemetry link: presents another process's plugin to the recorder. It
// accepts records until the number of unacknowledged records reaches its limit.
//
// Records that were not acknowledged when a process exited are sent to the next process. The stub
// never blocks: records that exceed its limits stay with the recorder, which limits and counts
// them.
//
// Owner: the Host. Runs on the reactor thread.
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
  // Called when there is capacity for more records or needs() has changed. Never called from inside
  // batch().
  virtual void telemetry_taken() = 0;
  // Called when records below this number have been committed, before telemetry_taken(). Called
  // only for a plugin that commits.
  virtual void telemetry_committed(const TelemetryClientStub &stub, std::uint64_t below) = 0;
  // See PolicyEvents.
  virtual void process_unhealthy(const std::string &compartment) = 0;
};

class TelemetryClientStub {
 public:
  static constexpr std::size_t max_records = 4096;  // unacknowledged
  static constexpr std::uint64_t max_bytes = 8u << 20;
  // larger batches are split
  static constexpr std::size_t frame_records = 256, frame_bytes = 256u << 10;
  // If records are pending and none is acknowledged within this time, the process is considered
  // unresponsive.
  static constexpr std::uint64_t silence_ms = 30'000;
  // A plugin with unknown needs is assumed to commit until this time has passed.
  static constexpr std::uint64_t needs_timeout_ms = 5'000;
  static constexpr std::size_t max_counters = 256;

  // If `required` is set, the plugin is assumed to commit until the plugin or expect() reports
  // otherwise. If `required` is not set, this is assumed only for needs_timeout_ms, and not after
  // give_up().
  TelemetryClientStub(Reactor &reactor, std::string compartment, bool required,
                      TelemetryEvents &events);
  ~TelemetryClientStub();
  TelemetryClientStub(const TelemetryClientStub &) = delete;
  TelemetryClientStub &operator=(const TelemetryClientStub &) = delete;

  void attach(OwnedFd trunk);
  void give_up(std::string reason);
  // Sets the needs that an earlier plugin process reported. Has no effect once the current process
  // has reported its own needs.
  void expect(std::uint32_t needs);

  // Records below this number are offered again because an endpoint was killed. The other process
  // may already have accepted them.
  void set_earlier_below(std::uint64_t number) noexcept { earlier_below_ = number; }
  // Returns the number below which all records have been acknowledged.
  std::uint64_t acknowledged_below() const noexcept { return acknowledged_; }

  // Returns the table. The table's `self` is this TelemetryClientStub.
  static const bh_telemetry &table() noexcept;
  // Returns the reason why no records are accepted. Empty if records are accepted or the state is
  // unknown.
  const std::string &failure() const noexcept { return failure_; }
  // Returns true if no process is connected or no records are waiting for it.
  bool idle() const noexcept { return kept_ == 0 || trunk_ == nullptr; }
  std::size_t kept() const noexcept { return kept_; }
  // Returns the most recently received plugin counters.
  const std::vector<std::pair<std::string, std::uint64_t>> &counters() const noexcept {
    return counters_;
  }

 private:
  struct Receiver;
  struct Place {
    std::uint64_t number;
    std::size_t begin;  // offset in `bytes`
  };
  // The content of one frame, kept until all its records are acknowledged.
  struct Kept {
    std::string bytes;  // archived RecordTexts
    std::vector<Place> places;
    std::size_t taken = 0;  // number of acknowledged records
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
  // All bits are set until the plugin's needs are known, because the plugin may ignore data that it
  // does not need. Known needs remain valid during a restart.
  std::uint32_t needs_ =
      BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS | BH_TELEMETRY_BLOCKS;
  bool needs_known_ = false;  // from this process or an earlier one
  std::vector<std::pair<std::string, std::uint64_t>> counters_;
  std::deque<Kept> frames_;  // sent, or waiting for a process
  std::size_t kept_ = 0;     // number of unacknowledged records in frames_
  std::uint64_t bytes_ = 0;  // total size of frames_
  Kept spare_;               // buffer of an acknowledged frame, for reuse
  std::uint64_t earlier_below_ = 0, acknowledged_ = 0;
  std::uint64_t last_ack_ns_ = 0;  // time of the last acknowledgement or the first send
  std::uint64_t timer_ = 0, needs_timer_ = 0;
};

}  // namespace bulkhead::link
