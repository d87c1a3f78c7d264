// The server stub of a telemetry link: queues batches of records, offers them to the plugin until
// it has accepted them, and acknowledges them.
//
// Owned by the compartment. All functions must be called on the reactor thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/abi/ext/telemetry.h"
#include "link/channel.hpp"
#include "link/server_stub.hpp"
#include "link/telemetry_client_stub.hpp"
#include "link/texts.hpp"

namespace bulkhead::link {

class TelemetryServerStub {
 public:
  // retry delay if the plugin did not accept all records
  static constexpr std::uint64_t retry_ms = 200;
  static constexpr std::uint64_t counters_ms = 500;  // interval between reports of counters
  // Size limit for queued frames: twice the limit that the client stub itself observes. If more is
  // received, the link is closed.
  static constexpr std::uint64_t max_waiting_bytes = 2 * TelemetryClientStub::max_bytes;

  // `plugin` must outlive this object.
  TelemetryServerStub(Reactor &reactor, const ServedPlugin &plugin);
  ~TelemetryServerStub();
  TelemetryServerStub(const TelemetryServerStub &) = delete;
  TelemetryServerStub &operator=(const TelemetryServerStub &) = delete;

  // Connects to a new client stub (see PolicyServerStub::attach()). A restarted client stub sends
  // unacknowledged records again.
  void attach(OwnedFd trunk, std::function<void()> on_lost = nullptr);
  // Called through the plugin's host table (see bh_host_telemetry). If the plugin has
  // BH_TELEMETRY_COMMITS, records are acknowledged only after it has committed them.
  void committed(std::uint64_t below);
  // Returns BH_TELEMETRY_... bits, or 0 if the plugin has failed.
  std::uint32_t needs() const;

 private:
  struct Receiver;

  // A frame with records that the plugin has not accepted yet.
  struct Waiting {
    std::string payload;
    std::uint32_t count = 0, taken = 0;
  };

  void on_frame(const Frame &frame, std::string_view payload);
  bool read(std::string_view payload, std::uint32_t count, std::uint32_t from);
  std::uint32_t offer_read();
  void offer();
  void offer_later();
  void forget_waiting();
  void lost();
  void send_counters();
  void send_taken();

  Reactor &reactor_;
  const ServedPlugin &plugin_;
  const std::unique_ptr<Receiver> receiver_;
  std::unique_ptr<Channel> trunk_;
  std::function<void()> on_lost_;
  std::deque<Waiting> waiting_;      // limited to the unacknowledged records of a client stub
  std::size_t waiting_records_ = 0;  // number of records in waiting_ that have not been accepted
  std::uint64_t waiting_bytes_ = 0;  // size of waiting_, at most max_waiting_bytes
  std::vector<bh_record> records_;   // the records of the frame that is being offered
  // Records below taken_ have been accepted, and records below committed_ have been committed.
  std::uint64_t taken_ = 0, committed_ = 0;
  // The highest values that taken_ and committed_ reached with previous endpoints. Records below
  // earlier_below_ come from previous endpoints, and the current endpoint may send them again.
  std::uint64_t known_taken_ = 0, known_committed_ = 0, earlier_below_ = 0;
  std::uint64_t timer_ = 0;
  std::uint64_t counters_timer_ = 0;
  std::vector<std::pair<std::string, std::uint64_t>> counters_sent_;
};

}  // namespace bulkhead::link
