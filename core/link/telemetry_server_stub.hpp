// The server stub of a telemetry plugin's link: stores batches, offers them to the plugin until it
// has accepted them, and acknowledges them.
//
// Owner: the compartment. Thread: the reactor's.
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
  static constexpr std::uint64_t retry_ms = 200;  // after the plugin has accepted only a part
  static constexpr std::uint64_t counters_ms = 500;
  // Limit of frames that the plugin has not fully accepted: twice the limit of a client stub. The
  // link of a client stub that exceeds it is closed.
  static constexpr std::uint64_t max_waiting_bytes = 2 * TelemetryClientStub::max_bytes;

  // `plugin` outlives this.
  TelemetryServerStub(Reactor &reactor, const ServedPlugin &plugin);
  ~TelemetryServerStub();
  TelemetryServerStub(const TelemetryServerStub &) = delete;
  TelemetryServerStub &operator=(const TelemetryServerStub &) = delete;

  // See PolicyServerStub::attach(). The client stub sends unacknowledged records again.
  void attach(OwnedFd trunk, std::function<void()> on_lost = nullptr);
  // Called by the plugin; see bh_host_telemetry. Records of a plugin that commits count as accepted
  // only then.
  void committed(std::uint64_t below);
  // BH_TELEMETRY_...; 0: the plugin has failed.
  std::uint32_t needs() const;

 private:
  struct Receiver;

  // A frame of which the plugin has not accepted all records.
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
  std::deque<Waiting> waiting_;              // limit: what a client stub may have unacknowledged
  std::size_t waiting_records_ = 0;          // records in them that are not accepted
  std::uint64_t waiting_bytes_ = 0;          // bytes in them, at most max_waiting_bytes
  std::vector<bh_record> records_;           // the records of the frame being offered
  std::uint64_t taken_ = 0, committed_ = 0;  // numbers below these are accepted, committed
  // Previous endpoints: numbers that the plugin has accepted and committed, and the number below
  // which this endpoint offers their records again.
  std::uint64_t known_taken_ = 0, known_committed_ = 0, earlier_below_ = 0;
  std::uint64_t timer_ = 0;
  std::uint64_t counters_timer_ = 0;
  std::vector<std::pair<std::string, std::uint64_t>> counters_sent_;
};

}  // namespace bulkhead::link
