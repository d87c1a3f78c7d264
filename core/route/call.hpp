// A call: what a client asked of a server, from its arrival to its one answer. See Calls for its
// stages.
//
// Thread: I/O thread. Owned by the Router.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "mcp/scan.hpp"
#include "route/call_events.hpp"
#include "route/numbered_table.hpp"
#include "route/reply_to.hpp"
#include "route/stage.hpp"
#include "route/target.hpp"

namespace bulkhead {

struct Exchange;
class Lane;
struct Session;

// What the record of a call needs; filled by the Recorder.
struct Account {
  std::string request;  // params, cut to BH_RECORD_TEXT_BYTES
  std::string response, trace_id, rule, reason;
  std::uint64_t params_bytes = 0, result_bytes = 0;
  std::uint64_t arguments_begin = 0, arguments_end = 0;  // in params; equal: no arguments
  std::uint64_t intent = 0;                              // number of the intent record; 0: none
  std::uint32_t action = 0, flags = 0;                   // BH_VERDICT_..., BH_RECORD_...
  std::uint32_t events = 0;                              // reported by its tools plugin
  bool dispatched = false;                               // the policy has allowed it
  bool recorded = false;
  bool more_than_arguments = false;  // params has other members that say what is asked for

  // Resets all members. Strings keep their capacity up to max_capacity bytes.
  void clear(std::size_t max_capacity) noexcept;
};

// The request of the client that the call answers.
struct ClientRequest {
  ReplyTo reply;
  std::string id;              // JSON token, as the client wrote it
  std::string progress_token;  // likewise; empty: the client wants no progress
  std::string process_name;    // of the client's process that sent it

  void clear() {
    reply = {};
    id.clear();
    progress_token.clear();
    process_name.clear();
  }
};

struct Call : Numbered<Call> {
  ClientRequest request;
  Session *session = nullptr;
  mcp::Method method = mcp::Method::none;
  std::string server;  // whose call it is, also while no lane has it
  std::string name;    // original tool or prompt name, or URI; for texts and records
  std::uint64_t start_ns = 0;
  std::uint64_t bytes_in = 0;

  Stage stage = Stage::open;
  bool waited = false;          // it was parked before
  bool judged = false;          // the policy was asked about it
  bool asked_about = false;     // the policy required a person's approval
  bool approved = false;        // a person has allowed it
  std::string approved_rule;    // the rule that required the approval
  std::uint32_t rules = 0;      // generation of the rules that judged it
  std::uint32_t open_asks = 0;  // server-initiated requests that it may have caused
  std::unique_ptr<ParkedCall> parked;

  Exchange *exchange = nullptr;  // at its server; null: at none
  Lane *watches = nullptr;       // where it recorded a subscription, which is undone if it fails
  Account account;

  Call *session_prev = nullptr, *session_next = nullptr;

  // Of the CallLoop.
  CallEvents events;
  bool queued = false;
  Call *queued_next = nullptr, *ended_next = nullptr;

  void clear();
};

using SessionCalls = IntrusiveList<Call, &Call::session_prev, &Call::session_next>;
using CallTable = NumberedTable<Call>;

// The lane that has the call; null: none.
Lane *lane_of(const Call &call) noexcept;
// The call waits for its turn in its lane, with its message; and its turn has come.
void queue_in_lane(Call &call, const CallInHand &hand);
std::unique_ptr<ParkedCall> take_from_lane(Call &call);
// The call was handed to a connector: its server may have run it.
bool was_sent(const Call &call) noexcept;

}  // namespace bulkhead
