// The client stub of a telemetry link: presents a telemetry plugin in another process to the
// recorder. It accepts records until it has reached its limit for unacknowledged records. The
// recorder keeps the rest, so the stub never blocks.
//
// If the process exits, its unacknowledged records are sent to the next process.
//
// Owned by the Host. All functions must be called on the reactor thread.
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
  // Called when more records can be accepted, or when needs() has changed. Not called inside
  // batch().
  virtual void telemetry_taken() = 0;
  // Called when the records below this number have been committed, before telemetry_taken(). Called
  // only for plugins that commit.
  virtual void telemetry_committed(const TelemetryClientStub &stub, std::uint64_t below) = 0;
  // See PolicyEvents.
  virtual void process_unhealthy(const std::string &compartment) = 0;
};

class TelemetryClientStub {
 public:
  static constexpr std::size_t max_records = 4096;  // limit for unacknowledged records
  static constexpr std::uint64_t max_bytes = 8u << 20;
  // Larger batches are split into several frames.
  static constexpr std::size_t frame_records = 256, frame_bytes = 256u << 10;
  // If there are unacknowledged records and no frame arrives within this time, the process is
  // reported as unresponsive.
  static constexpr std::uint64_t silence_ms = 30'000;
  // How long a plugin with unknown needs is assumed to commit. See the constructor.
  static constexpr std::uint64_t needs_timeout_ms = 5'000;
  static constexpr std::size_t max_counters = 256;

  // A required plugin is assumed to commit as long as its needs are unknown. Any other plugin is
  // assumed to commit only for needs_timeout_ms, and not after it has failed or after give_up().
  TelemetryClientStub(Reactor &reactor, std::string compartment, bool required,
                      TelemetryEvents &events);
  ~TelemetryClientStub();
  TelemetryClientStub(const TelemetryClientStub &) = delete;
  TelemetryClientStub &operator=(const TelemetryClientStub &) = delete;

  void attach(OwnedFd trunk);
  void give_up(std::string reason);
  // Sets the needs that an earlier process reported. Has no effect if the needs are already
  // known.
  void expect(std::uint32_t needs);

  // Must be called if an earlier endpoint was killed. Records below `number` are then offered
  // again, and the other process may have accepted them already.
  void set_earlier_below(std::uint64_t number) noexcept { earlier_below_ = number; }
  // Returns the number below which all records have been acknowledged.
  std::uint64_t acknowledged_below() const noexcept { return acknowledged_; }

  // Returns a table whose `self` is a TelemetryClientStub.
  static const bh_telemetry &table() noexcept;
  // Returns the reason why the plugin has failed. Returns an empty string if it has not failed or
  // its state is unknown. Records are accepted in any case, up to the limits.
  const std::string &failure() const noexcept { return failure_; }
  // Returns true if there are no unacknowledged records, or no process is connected.
  bool idle() const noexcept { return kept_ == 0 || trunk_ == nullptr; }
  std::size_t kept() const noexcept { return kept_; }
  // Returns the plugin's counters, including those of earlier processes.
  const std::vector<std::pair<std::string, std::uint64_t>> &counters() const noexcept {
    return counters_;
  }

 private:
  struct Receiver;
  struct Place {
    std::uint64_t number;
    std::size_t begin;  // offset in `bytes`
  };
  // The records of one frame. Kept until all of them have been acknowledged.
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
  // Until the plugin's needs are known, it is assumed to need everything, because sending unneeded
  // data is harmless. Known needs remain valid during a restart.
  std::uint32_t needs_ =
      BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS | BH_TELEMETRY_BLOCKS;
  bool needs_known_ = false;  // reported by this process or an earlier one
  std::vector<std::pair<std::string, std::uint64_t>> counters_;
  std::vector<std::pair<std::string, std::uint64_t>> earlier_counters_;  // of earlier processes
  std::deque<Kept> frames_;  // frames that were sent or wait for a process
  std::size_t kept_ = 0;     // number of unacknowledged records
  std::uint64_t bytes_ = 0;  // total size of frames_
  Kept spare_;               // buffer of an acknowledged frame, for reuse
  std::uint64_t earlier_below_ = 0, acknowledged_ = 0;
  std::uint64_t last_ack_ns_ = 0;  // time of the last incoming frame, attach() or first send
  std::uint64_t timer_ = 0, needs_timer_ = 0;
};

}  // namespace bulkhead::link
