// The client stub of a telemetry plugin's link: to the recorder, the plugin of another process
// looks like one that takes records, as many as may be unacknowledged at once.
//
// Records that were not heard of as taken when the other process ended are sent to the next one.
// Nothing here ever waits: what finds no room stays with the recorder, which bounds and counts.
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
  // There is room for more, or it wants something else; never from inside batch().
  virtual void telemetry_taken() = 0;
  // Records below this number are committed: of a plugin that commits, and before
  // telemetry_taken().
  virtual void telemetry_committed(const TelemetryClientStub &stub, std::uint64_t below) = 0;
  // See PolicyEvents.
  virtual void process_useless(const std::string &compartment) = 0;
};

class TelemetryClientStub {
 public:
  static constexpr std::size_t max_records = 4096;  // not acknowledged
  static constexpr std::uint64_t max_bytes = 8u << 20;
  static constexpr std::size_t frame_records = 256, frame_bytes = 256u << 10;  // then the next
  static constexpr std::uint64_t silence_ms = 30'000;    // with records to take: it hangs
  static constexpr std::uint64_t first_word_ms = 5'000;  // for which it may be one that commits
  static constexpr std::size_t max_counters = 256;

  // `required`: it may be one that commits until it says that it is not, or that is told of it,
  // however long that takes; otherwise for first_word_ms, and not when it is given up.
  TelemetryClientStub(Reactor &reactor, std::string compartment, bool required,
                      TelemetryEvents &events);
  ~TelemetryClientStub();
  TelemetryClientStub(const TelemetryClientStub &) = delete;
  TelemetryClientStub &operator=(const TelemetryClientStub &) = delete;

  void attach(OwnedFd trunk);
  void give_up(std::string reason);
  // What an earlier process of the plugin has wanted. Nothing, once it has spoken itself.
  void expect(std::uint32_t needs);

  // Records below this number are offered again, after an endpoint that was killed: the other
  // process may have taken them from it.
  void set_earlier_below(std::uint64_t number) noexcept { earlier_below_ = number; }
  // All below this number have been acknowledged.
  std::uint64_t acknowledged_below() const noexcept { return acknowledged_; }

  // The table; its `self` is the TelemetryClientStub.
  static const bh_telemetry &table() noexcept;
  // Why it takes nothing; empty: it does, or that is not known yet.
  const std::string &failure() const noexcept { return failure_; }
  // Nothing waits for the other process, or nobody is there to take it.
  bool idle() const noexcept { return kept_ == 0 || trunk_ == nullptr; }
  std::size_t kept() const noexcept { return kept_; }
  // The plugin's, as last heard.
  const std::vector<std::pair<std::string, std::uint64_t>> &counters() const noexcept {
    return counters_;
  }

 private:
  struct Receiver;
  struct Place {
    std::uint64_t number;
    std::size_t begin;  // in `bytes`
  };
  // What one frame carries, until all of it is acknowledged.
  struct Kept {
    std::string bytes;  // archived RecordTexts
    std::vector<Place> places;
    std::size_t taken = 0;  // so many of them are
  };

  std::uint32_t batch(const bh_record *const *records, std::uint32_t n);
  bool full() const noexcept { return kept_ >= max_records || bytes_ >= max_bytes; }
  void send_from(std::size_t index);
  void on_frame(const Frame &frame, std::string_view payload);
  bool acknowledge(std::uint64_t number);
  void drop_front();
  bool take_counters(std::string_view payload);
  void lost();
  void not_known();
  void watch_silence();

  Reactor &reactor_;
  const std::string compartment_;
  const bool required_;
  TelemetryEvents &events_;
  const std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<Channel> trunk_;
  std::string failure_;
  // Until it is known what the plugin wants: all of it, which it may leave aside. What was said
  // holds on while its process is started again.
  std::uint32_t needs_ =
      BH_TELEMETRY_TEXTS | BH_TELEMETRY_EVENTS | BH_TELEMETRY_COMMITS | BH_TELEMETRY_BLOCKS;
  bool has_said_ = false;  // what it wants, or another has for it
  std::vector<std::pair<std::string, std::uint64_t>> counters_;
  std::deque<Kept> frames_;  // sent, or to be sent when somebody is there
  std::size_t kept_ = 0;     // records in them that are not acknowledged
  std::uint64_t bytes_ = 0;  // of all frames
  Kept spare_;               // the memory of one that was acknowledged
  std::uint64_t earlier_below_ = 0, acknowledged_ = 0;
  std::uint64_t heard_ns_ = 0;  // or first sent to
  std::uint64_t timer_ = 0, first_word_timer_ = 0;
};

}  // namespace bulkhead::link
