// Records completed client requests and notifications, and passes the records to telemetry plugins
// in batches. Without a telemetry plugin, nothing is stored. Texts are copied only if a plugin
// needs them.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "bulkhead/abi/ext/draft/event.h"
#include "mcp/scan.hpp"
#include "reactor/reactor.hpp"
#include "route/call.hpp"
#include "route/record_ring.hpp"
#include "route/session.hpp"

namespace bulkhead {

class Recorder {
 public:
  // Limit on pending records. Beyond this limit, records are dropped and counted.
  static constexpr std::size_t max_waiting = 10'000;
  // Limit on the texts of in-flight calls and pending records. Beyond this limit, texts are
  // omitted.
  static constexpr std::size_t max_text_bytes = 64u << 20;
  static constexpr std::uint64_t flush_ms = 200;
  // If this many records are pending, they are passed immediately.
  static constexpr std::size_t flush_records = 64;
  static constexpr std::uint32_t batch_size = 256;
  static constexpr std::size_t max_text = 1024;  // for name, rule, reason, error and request id
  static constexpr std::size_t max_detail = BH_EVENT_BYTES;

  explicit Recorder(Reactor &reactor);
  ~Recorder();

  // Adds a plugin. Its needs are queried at each use because a plugin in another process reports
  // them later. If `elsewhere` is true, the plugin runs in another process and acknowledges records
  // (set_acknowledged()).
  void add_sink(const bh_telemetry *table, void *self, bool elsewhere = false) {
    sinks_.push_back({table, self, 0, 0, 0, elsewhere});
    elsewhere_ = elsewhere_ || elsewhere;
  }
  // Sets memory that outlives this process. A record is stored there before its answer is sent, and
  // stays there until all sinks in other processes have acknowledged it. Records from an earlier
  // process are offered first, and their numbering continues. Must be called before the first
  // record. Borrowed.
  void use_ring(RecordRing *ring);
  // Records below this number belong to an earlier process.
  std::uint64_t earlier_below() const noexcept { return earlier_below_; }
  void set_acknowledged(const void *sink, std::uint64_t below);
  // Returns true if a record must be written before its answer is sent.
  bool goes_first() const { return keeps() || commits(); }
  bool active() const noexcept { return !sinks_.empty(); }
  // Returns true if a plugin needs records other than calls.
  bool wants_events() const { return any_needs(BH_TELEMETRY_EVENTS); }

  // A request or notification that does not become a call.
  struct Message {
    const Session *session = nullptr;
    std::uint64_t session_handle = 0;
    std::string_view text;
    const mcp::Scan *scan = nullptr;
    std::uint64_t start_ns = 0;
  };
  // The end of a call or message, for its record.
  struct End {
    std::uint32_t outcome = BH_OUTCOME_OK;
    std::uint64_t now_ns = 0, bytes_out = 0;
    std::string_view rule, error;
    std::string_view response;  // result or error object; if empty, see note_response()
  };

  // Called when a call starts. Stores the parts of the message that the call's record needs.
  void begin(Call &call, std::string_view message, const mcp::Scan &scan);
  // Stores the arguments with which a policy has replaced the client's arguments.
  void note_rewritten(Call &call, std::string_view arguments);
  void note_response(Call &call, std::string_view json);
  // Sets the gateway's identity, which is recorded once, before the first record.
  void identify(std::string_view profile, std::string_view user);
  // Records the policies and rules that are now in effect. For `detail`, see BH_RECORD_POLICY.
  void policy(std::string_view detail);
  // Records the intent of a call before it is sent, if a plugin commits records.
  void intent(Call &call);
  // Records a call event; `detail` is a JSON object.
  void event(const Call &call, std::uint32_t kind, std::string_view detail);
  // Records the end of a call and clears its account. has_place is true if must_refuse() has
  // already reserved space for the record.
  void record(Call &call, const End &end, bool has_place = true);
  void record(const Message &message, const End &end);
  // Ends the call without a record.
  void forget(Call &call) noexcept;

  // Returns true if new calls must be rejected because they might end without a record and a plugin
  // does not allow this. Calls that have already started keep their reserved space.
  bool must_refuse(std::size_t under_way) const;

  // Returns true if a plugin requires that messages are sent or answered only after their record is
  // committed.
  bool commits() const { return any_needs(BH_TELEMETRY_COMMITS); }
  // Returns the number of the last record plus one.
  std::uint64_t barrier() const noexcept { return barrier_; }
  // Returns true if all records below this number have been committed, or no plugin requires
  // commits.
  bool is_committed(std::uint64_t below) const;
  void set_committed(const void *sink, std::uint64_t below);

  // Offers all pending records to the sinks.
  void flush();
  std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  struct Entry {
    bh_record facts{};
    std::string transport, peer, principal, process_name, method, server, name, rule, error,
        request_id, request, response, reason, trace_id, detail;
    ClaimedName claimed_name;
    std::size_t text_bytes() const noexcept { return request.size() + response.size(); }
  };
  struct Sink {
    const bh_telemetry *table;
    void *self;
    std::uint64_t taken;         // entries before this position have been taken
    std::uint64_t committed;     // records below this number have been committed
    std::uint64_t acknowledged;  // records below this number have been acknowledged (elsewhere)
    bool elsewhere;
    std::uint32_t needs() const;
  };
  bool any_needs(std::uint32_t bit) const;
  // Returns true if every plugin that needs texts also needs the texts of rejected calls.
  bool records_rejected() const;
  std::string kept(std::string_view json, std::uint32_t cut_flag, std::uint32_t *flags);
  Entry *new_entry(const End &end, std::uint64_t start_ns, bool has_place);
  static void describe(const Session &session, Entry *entry);
  static void describe(const Call &call, Entry *entry);
  static bh_record view_of(const Entry &entry);
  // Returns true if a sink runs in another process and there is memory that outlives this process.
  bool keeps() const noexcept { return ring_ != nullptr && elsewhere_; }
  void keep(const Entry &entry) noexcept;
  void load(const bh_record &record);
  void offer(Sink &sink);
  std::vector<std::uint64_t> wanted_from(const Sink &sink, std::uint64_t at) const;
  void drop_taken();
  void start_timer();
  void flush_soon();

  Reactor &reactor_;
  std::vector<Sink> sinks_;
  std::deque<Entry> waiting_;
  std::uint64_t first_ = 0;    // position of waiting_.front()
  std::uint64_t next_number_;  // dropped records also have numbers, so the gap is visible
  std::size_t text_bytes_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t timer_ = 0;
  std::uint64_t barrier_ = 0;
  bool flush_pending_ = false;
  RecordRing *ring_ = nullptr;
  bool elsewhere_ = false;  // a sink runs in another process
  std::uint64_t earlier_below_ = 0;
  std::string identity_;  // detail of BH_RECORD_IDENTITY, until it is recorded
};

// Returns the 32 hex digits of the trace id in a W3C traceparent, or an empty view if invalid.
std::string_view trace_of(std::string_view traceparent) noexcept;

}  // namespace bulkhead
