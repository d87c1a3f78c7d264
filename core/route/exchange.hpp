// Exchanges: one request with an id of ours, from its arrival to its one end.
//
// Owner: the Router. An exchange's number is its JSON-RPC id toward the upstream and its progress
// token, so it stays below 2^53 (many servers read numbers as doubles). Slots are reused with their
// strings' capacity: in steady state a call allocates nothing here.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/scan.hpp"
#include "route/reply_to.hpp"
#include "route/target.hpp"

namespace bulkhead {

class Lane;
struct Session;

enum class Purpose : std::uint8_t {
  call,       // a client waits for the answer
  handshake,  // the lane's initialize
  list,       // the lane's own listing; `list_kind` says of what
  quiet       // subscribe, setLevel: sent on behalf of several clients, nobody waits
};

// What a call waits for; see Calls.
enum class Stage : std::uint8_t {
  open,  // nothing: a step is under way
  checking,
  deciding,
  approving,
  recording,
  at_server,
  answer_checking,
  answer_deciding
};

// What the record of a call will need; kept by the Recorder.
struct Account {
  std::string request;  // params, as far as they are kept
  std::string response, trace_id, rule, reason;
  std::uint64_t params_bytes = 0, result_bytes = 0;
  std::uint64_t arguments_begin = 0, arguments_end = 0;  // in params; equal: there are none
  std::uint64_t intent = 0;                              // number of its intent's record; 0: none
  std::uint32_t action = 0, flags = 0;                   // BH_VERDICT_..., BH_RECORD_...
  std::uint32_t events = 0;                              // that its plugin has said
  bool dispatched = false;                               // the policy has let it pass
  bool recorded = false;
  bool more_than_arguments = false;  // params has other members that say what is asked for

  // Strings keep their capacity up to max_capacity.
  void clear(std::size_t max_capacity) noexcept;
};

struct Exchange {
  std::uint64_t id = 0;  // 0: free slot
  std::uint32_t index = 0;
  std::uint32_t generation = 0;
  Purpose purpose = Purpose::call;
  mcp::Method method = mcp::Method::none;
  std::uint8_t list_kind = 0;
  bool sent = false;         // handed to the wire: it may have run
  bool takes_place = true;   // while it is sent, one of the lane's in_flight
  bool asked_about = false;  // the policy has wanted a person to allow it
  Stage stage = Stage::open;
  bool waited = false;        // it has been parked before
  bool judged = false;        // the policy has been asked about it
  bool approved = false;      // a person has allowed it,
  std::string approved_rule;  // which this rule wanted
  std::uint32_t rules = 0;    // by which it was judged; see Calls
  std::unique_ptr<ParkedCall> parked;
  std::uint32_t open_asks = 0;

  ReplyTo reply;
  Session *session = nullptr;
  Lane *lane = nullptr;
  Lane *watches = nullptr;   // has recorded a subscription there, which goes if this fails
  std::string client_id;     // the client's id token, as it came
  std::string client_token;  // the client's progress token, empty: none
  std::string server;        // of a call: whose it is, also while no lane has it
  std::string name;          // original tool or prompt name, or URI; for texts and records
  std::string process_name;  // of the client's process that has sent it
  std::uint64_t timeout_ms = 0;
  std::uint64_t start_ns = 0;
  std::uint64_t bytes_in = 0;
  Account account;

  // Links of the lists below; owned by them.
  Exchange *session_prev = nullptr, *session_next = nullptr;
  Exchange *lane_prev = nullptr, *lane_next = nullptr;
  Exchange *wheel_prev = nullptr, *wheel_next = nullptr;
  std::uint64_t deadline_tick = 0;  // 0: not armed
};

// An intrusive list over one pair of links.
template <Exchange *Exchange::*Prev, Exchange *Exchange::*Next>
struct ExchangeList {
  Exchange *head = nullptr;
  std::uint32_t size = 0;

  void push(Exchange &e) {
    e.*Prev = nullptr;
    e.*Next = head;
    if (head != nullptr) head->*Prev = &e;
    head = &e;
    ++size;
  }
  void remove(Exchange &e) {
    if (e.*Prev != nullptr) (e.*Prev)->*Next = e.*Next;
    if (e.*Next != nullptr) (e.*Next)->*Prev = e.*Prev;
    if (head == &e) head = e.*Next;
    e.*Prev = e.*Next = nullptr;
    --size;
  }
};
using SessionExchanges = ExchangeList<&Exchange::session_prev, &Exchange::session_next>;
using LaneExchanges = ExchangeList<&Exchange::lane_prev, &Exchange::lane_next>;

class ExchangeTable {
 public:
  static constexpr std::uint32_t max_exchanges = 1u << 20;
  static constexpr std::uint64_t tick_ms = 50;  // deadlines are this exact

  // Null when max_exchanges are open.
  Exchange *open();
  // Null: no such exchange (any more).
  Exchange *get(std::uint64_t id) noexcept;
  // Disarms and frees; the caller has taken it off the other lists.
  void close(Exchange &exchange);
  std::uint32_t size() const noexcept { return open_; }
  // f(const Exchange &) for each that is open; f opens and closes none.
  template <class F>
  void for_each(F &&f) const {
    for (const Exchange &e : slots_) {
      if (e.id != 0) f(e);
    }
  }

  void arm(Exchange &exchange, std::uint64_t now_ns, std::uint64_t timeout_ms);
  void disarm(Exchange &exchange);
  bool any_armed() const noexcept { return armed_ != 0; }

  // Moves the wheel to now; ids of the exchanges that are due are appended to *due and disarmed.
  void expire(std::uint64_t now_ns, std::vector<std::uint64_t> *due);

 private:
  static constexpr std::uint32_t wheel_slots = 1024;
  static constexpr std::uint32_t index_bits = 20;

  std::deque<Exchange> slots_;
  std::vector<std::uint32_t> free_;
  std::uint32_t open_ = 0;
  std::uint32_t armed_ = 0;
  std::uint64_t last_tick_ = 0;
  std::vector<Exchange *> wheel_ = std::vector<Exchange *>(wheel_slots);
};

}  // namespace bulkhead
