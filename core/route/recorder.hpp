// Records of clients' requests and notifications that have ended, handed to telemetry plugins in
// batches. Owner: the Router. Thread: [io]. Without a telemetry plugin nothing is kept, and without
// one that wants texts nothing is copied.
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

namespace bulkhead {

class Recorder {
 public:
  static constexpr std::size_t max_waiting = 10'000;        // beyond: dropped and counted
  static constexpr std::size_t max_text_bytes = 64u << 20;  // of messages, of calls under way and
                                                            // of waiting records; beyond: left out
  static constexpr std::uint64_t flush_ms = 200;
  static constexpr std::size_t flush_records = 64;  // so many do not wait for that
  static constexpr std::uint32_t batch_size = 256;
  static constexpr std::size_t max_text = 1024;  // of name, rule, reason, error and request id
  static constexpr std::size_t max_detail = BH_EVENT_BYTES;

  explicit Recorder(Reactor &reactor);
  ~Recorder();

  // What it needs is asked whenever it counts: another process says it later. elsewhere: it is in
  // another process, and acknowledges what has arrived there (set_acknowledged()).
  void add_sink(const bh_telemetry *table, void *self, bool elsewhere = false) {
    sinks_.push_back({table, self, 0, 0, 0, elsewhere});
    elsewhere_ = elsewhere_ || elsewhere;
  }
  // Memory that outlives this process: each record is in it before its answer leaves, until all
  // sinks elsewhere have acknowledged it. What an earlier process has left there comes first, and
  // its numbers go on. Before the first record; borrowed.
  void use_ring(RecordRing *ring);
  // Numbers below this one are of an earlier process.
  std::uint64_t earlier_below() const noexcept { return earlier_below_; }
  void set_acknowledged(const void *sink, std::uint64_t below);
  // A record has to be made before its answer is sent.
  bool goes_first() const { return keeps() || commits(); }
  bool active() const noexcept { return !sinks_.empty(); }
  // Some plugin keeps records of other kinds than calls.
  bool wants_events() const { return any_needs(BH_TELEMETRY_EVENTS); }

  // A request or notification that no exchange carries, or not yet.
  struct Message {
    const Session *session = nullptr;
    std::uint64_t session_handle = 0;
    std::string_view text;
    const mcp::Scan *scan = nullptr;
    std::uint64_t start_ns = 0;
  };
  // What a record says of the end.
  struct End {
    std::uint32_t outcome = BH_OUTCOME_OK;
    std::uint64_t now_ns = 0, bytes_out = 0;
    std::string_view rule, error;
    std::string_view response;  // result or error object; empty: what note_response() has kept
  };

  // The call begins: what its record will need of the message.
  void begin(Call &call, std::string_view message, const mcp::Scan &scan);
  // What goes to the server instead of the client's arguments.
  void note_rewritten(Call &call, std::string_view arguments);
  // What will leave, or has left.
  void note_response(Call &call, std::string_view json);
  // Whose gateway this is: said once, before the first record.
  void identify(std::string_view profile, std::string_view user);
  // Which policies and rules are in force from here on; `detail` as of BH_RECORD_POLICY.
  void policy(std::string_view detail);
  // Of a call that is about to be sent to its server, where a plugin commits.
  void intent(Call &call);
  // What has happened to a call, or what it has done; `detail`: a JSON object.
  void event(const Call &call, std::uint32_t kind, std::string_view detail);
  // One record. The exchange is not used afterwards but to be closed.
  // has_place: must_refuse() has counted it.
  void record(Call &call, const End &end, bool has_place = true);
  void record(const Message &message, const End &end);
  // The exchange ends without a record.
  void forget(Call &call) noexcept;

  // True: a call that begins now might end without a record, and some plugin wants none of that.
  // Those that begin all the same have their place.
  bool must_refuse(std::size_t under_way) const;

  // Some plugin wants nothing sent or answered before it is committed.
  bool commits() const { return any_needs(BH_TELEMETRY_COMMITS); }
  // Above the number of every record that has been made.
  std::uint64_t barrier() const noexcept { return barrier_; }
  // All records below this number are committed, or nobody wants that (any more).
  bool is_committed(std::uint64_t below) const;
  void set_committed(const void *sink, std::uint64_t below);

  // Offers what waits, now: when a sink may take more, and at the end.
  void flush();
  std::uint64_t dropped() const noexcept { return dropped_; }

 private:
  struct Entry {
    bh_record facts{};
    std::string transport, peer, principal, process_name, method, server, name, rule, error,
        request_id, request, response, reason, trace_id, detail;
    std::size_t text_bytes() const noexcept { return request.size() + response.size(); }
  };
  struct Sink {
    const bh_telemetry *table;
    void *self;
    std::uint64_t taken;         // entries before this place are its past
    std::uint64_t committed;     // numbers below this are
    std::uint64_t acknowledged;  // likewise, of one elsewhere
    bool elsewhere;
    std::uint32_t needs() const;
  };
  bool any_needs(std::uint32_t bit) const;
  std::string kept(std::string_view json, std::uint32_t cut_flag, std::uint32_t *flags);
  Entry *new_entry(const End &end, std::uint64_t start_ns, bool has_place);
  static void describe(const Session &session, Entry *entry);
  static void describe(const Call &call, Entry *entry);
  static bh_record view_of(const Entry &entry);
  // Some sink is elsewhere, and there is memory that outlives this process.
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
  std::uint64_t first_ = 0;    // place of waiting_.front()
  std::uint64_t next_number_;  // a dropped record has one, too, so that the gap shows
  std::size_t text_bytes_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t timer_ = 0;
  std::uint64_t barrier_ = 0;
  bool flush_pending_ = false;
  RecordRing *ring_ = nullptr;
  bool elsewhere_ = false;  // some sink is
  std::uint64_t earlier_below_ = 0;
  std::string identity_;  // of BH_RECORD_IDENTITY, until it is said
};

// The 32 hex digits of the trace in a W3C traceparent; empty: it is none.
std::string_view trace_of(std::string_view traceparent) noexcept;

}  // namespace bulkhead
