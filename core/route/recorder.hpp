// Creates records of client requests, notifications and other events, and passes them to telemetry
// plugins (sinks) in batches. Without a telemetry plugin, nothing is stored. The contents of
// requests and responses are copied only if a plugin needs them.
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
  // Maximum number of pending records. Beyond this limit, records are dropped and counted, unless
  // space was reserved for them.
  static constexpr std::size_t max_waiting = 10'000;
  // Maximum total size of the requests and responses that are stored for in-flight calls and
  // pending records. A text that would exceed this limit is omitted.
  static constexpr std::size_t max_text_bytes = 64u << 20;
  static constexpr std::uint64_t flush_ms = 200;
  // When this many records are pending, they are passed to the plugins without waiting for
  // flush_ms.
  static constexpr std::size_t flush_records = 64;
  static constexpr std::uint32_t batch_size = 256;
  static constexpr std::size_t max_text = 1024;  // for the name, rule, reason, error and request id
  static constexpr std::size_t max_detail = BH_EVENT_BYTES;

  explicit Recorder(Reactor &reactor);
  ~Recorder();

  // Adds a sink. A plugin's needs are queried each time they are used, because a plugin in another
  // process reports them only after it has started. If `elsewhere` is true, the plugin runs in
  // another process and acknowledges records (set_acknowledged()).
  void add_sink(const bh_telemetry *table, void *self, bool elsewhere = false) {
    sinks_.push_back({table, self, 0, 0, 0, elsewhere});
    elsewhere_ = elsewhere_ || elsewhere;
  }
  // Sets the ring, whose memory survives this process. If a sink runs in another process, each
  // record that fits is stored in the ring before the response that it describes is sent, and stays
  // there until all sinks in other processes have acknowledged it. The records of an earlier
  // process are passed to the sinks first, and their numbering continues. Must be called before the
  // first record is created. `ring` is borrowed and may be null.
  void use_ring(RecordRing *ring);
  // Records below this number were created by an earlier process.
  std::uint64_t earlier_below() const noexcept { return earlier_below_; }
  void set_acknowledged(const void *sink, std::uint64_t below);
  // Returns true if a record must be written before the response that it describes is sent.
  bool goes_first() const { return keeps() || commits(); }
  bool active() const noexcept { return !sinks_.empty(); }
  // Returns true if a plugin needs records of events other than calls. Otherwise, identify(),
  // policy() and event() have no effect.
  bool wants_events() const { return any_needs(BH_TELEMETRY_EVENTS); }

  // A client request or notification that does not start a call, or an invalid message.
  struct Message {
    const Session *session = nullptr;
    std::uint64_t session_handle = 0;
    std::string_view text;
    const mcp::Scan *scan = nullptr;
    std::uint64_t start_ns = 0;
  };
  // The outcome of a call or other message.
  struct End {
    std::uint32_t outcome = BH_OUTCOME_OK;
    std::uint64_t now_ns = 0, bytes_out = 0;
    std::string_view rule, error;
    // The result or error object. If empty, the record of a call contains the text from
    // note_response().
    std::string_view response;
  };

  // Stores the parts of the message that the call's record needs. Called when a call starts.
  void begin(Call &call, std::string_view message, const mcp::Scan &scan);
  // Replaces the stored arguments. Called when a policy has rewritten the arguments.
  void note_rewritten(Call &call, std::string_view arguments);
  void note_response(Call &call, std::string_view json);
  // Sets the gateway's identity, which is recorded once, before the next record.
  void identify(std::string_view profile, std::string_view user);
  // Records an event that concerns the whole gateway: BH_RECORD_POLICY or BH_RECORD_PLUGIN, which
  // define the format of `detail`.
  void gateway_event(std::uint32_t kind, std::string_view detail);
  // Records that a call is about to be sent. Called if a plugin requires commits.
  void intent(Call &call);
  // Records something that happened during a call. `detail` is a JSON object.
  void event(const Call &call, std::uint32_t kind, std::string_view detail);
  // Records the outcome of a call and clears the call's account. If has_place is true,
  // must_refuse() has been checked for this call, so space for its record is reserved.
  void record(Call &call, const End &end, bool has_place = true);
  void record(const Message &message, const End &end);
  // Clears the call's account without creating a record.
  void forget(Call &call) noexcept;

  // Returns true if new calls must be refused because a plugin does not allow calls without
  // records, and there is no space for more records. `under_way` is the number of in-flight calls,
  // each of which has space reserved for its record.
  bool must_refuse(std::size_t under_way) const;

  // Returns true if a plugin requires records to be committed before messages are sent to servers
  // or responses are sent to clients.
  bool commits() const { return any_needs(BH_TELEMETRY_COMMITS); }
  // Returns the number of the newest record plus one.
  std::uint64_t barrier() const noexcept { return barrier_; }
  // Returns true if all records below this number have been committed, or if no plugin requires
  // commits.
  bool is_committed(std::uint64_t below) const;
  void set_committed(const void *sink, std::uint64_t below);

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
    // The sink has received all entries before this position that it needs.
    std::uint64_t taken;
    std::uint64_t committed;  // records below this number have been committed
    // Records below this number have been acknowledged. Used only if `elsewhere` is true.
    std::uint64_t acknowledged;
    bool elsewhere;
    std::uint32_t needs() const;
  };
  bool any_needs(std::uint32_t bit) const;
  // Returns true if every plugin that needs the texts of requests and responses also needs the
  // texts of rejected calls.
  bool records_rejected() const;
  std::string kept(std::string_view json, std::uint32_t cut_flag, std::uint32_t *flags);
  Entry *new_entry(const End &end, std::uint64_t start_ns, bool has_place);
  static void describe(const Session &session, Entry *entry);
  static void describe(const Call &call, Entry *entry);
  static bh_record view_of(const Entry &entry);
  // Returns true if records must survive this process, that is, if a ring is set and a sink runs in
  // another process.
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
  std::uint64_t next_number_;  // also incremented for dropped records, so that a gap shows the loss
  std::size_t text_bytes_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t timer_ = 0;
  std::uint64_t barrier_ = 0;
  bool flush_pending_ = false;
  RecordRing *ring_ = nullptr;
  bool elsewhere_ = false;  // a sink runs in another process
  std::uint64_t earlier_below_ = 0;
  std::string identity_;  // detail of BH_RECORD_IDENTITY; empty once recorded
};

// Returns the trace id (32 hexadecimal digits) of a W3C traceparent, or an empty view if the
// traceparent is invalid.
std::string_view trace_of(std::string_view traceparent) noexcept;

}  // namespace bulkhead
