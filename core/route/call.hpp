// A call is a client's request to a server, from its arrival until it is answered or cancelled. See
// Calls for its stages.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "bulkhead/abi/ext/connector.h"
#include "mcp/scan.hpp"
#include "route/call_events.hpp"
#include "route/call_input.hpp"
#include "route/kept_request.hpp"
#include "route/numbered_table.hpp"
#include "route/reply_to.hpp"
#include "route/stage.hpp"
#include "route/target.hpp"
#include "route/task_bridge.hpp"
#include "route/task_forms.hpp"

namespace bulkhead {

class AnswerForm;
struct Exchange;
class Lane;
struct Session;

// The data for a call's record, filled in by the Recorder, the Judge and the pipeline.
struct Account {
  std::string request;  // params, truncated to BH_RECORD_TEXT_BYTES
  std::string response, trace_id, rule, reason;
  std::uint64_t params_bytes = 0, result_bytes = 0;
  std::uint64_t arguments_begin = 0, arguments_end = 0;  // in params; equal if it has no arguments
  std::uint64_t intent = 0;                              // number of the intent record, or 0
  std::uint32_t action = 0, flags = 0;                   // BH_VERDICT_..., BH_RECORD_...
  std::uint32_t events = 0;                              // number of events from its tools plugin
  std::uint32_t server_revision = 0;                     // see revision_number(); 0 if not sent
  bool dispatched = false;                               // submitted to a lane; may have run
  bool recorded = false;
  bool more_than_arguments = false;  // params has other members that affect the request

  // Resets all members. Strings keep their capacity up to max_capacity bytes.
  void clear(std::size_t max_capacity) noexcept;
};

// The client's request for which the call was made.
struct ClientRequest {
  ReplyTo reply;
  std::string id;              // JSON token, as the client wrote it
  std::string progress_token;  // JSON token; empty if the client wants no progress
  std::string process_name;    // of the client process that sent it
  KeptRequest kept;            // set when the call is sent, if a requestState may be needed
  // For a request about a task: the id as the client wrote it (a JSON token). For a call that has
  // created a task: the id that the client receives.
  std::string task_id;

  void clear() {
    reply = {};
    id.clear();
    progress_token.clear();
    process_name.clear();
    kept.clear();
    task_id.clear();
  }
};

// A task that a call has created, until the client has received its description.
struct CreatedTask {
  bh_lane lane = 0;  // connection to its server
  std::string id;    // JSON string: the server's; empty if there is no such task
};

struct Call : Numbered<Call> {
  ClientRequest request;
  Session *session = nullptr;
  mcp::Method method = mcp::Method::none;
  std::string server;  // name of the call's server, even if the call is on no lane
  // Original tool or prompt name, or URI; for texts and records. For a request about a task, the
  // tool whose call created the task.
  std::string name;
  std::uint64_t start_ns = 0;
  std::uint64_t bytes_in = 0;

  Stage stage = Stage::open;
  bool waited = false;         // the call has been parked before
  bool judged = false;         // the policy has been asked about the call
  bool asked_about = false;    // the policy has required human approval
  bool approved = false;       // a human approver has allowed it
  bool judges_inputs = false;  // the rules evaluate requests for input. Set when the call is sent
  std::string approved_rule;   // the rules that required the approval, separated by ", "
  // The tool's definition when the approval was requested.
  DefinitionHash approved_definition{};
  // Generation of the rules that evaluated the call; 0 before the first evaluation, or if the
  // definition of its tool has changed since.
  std::uint32_t rules = 0;
  std::uint32_t redefined = 0;  // how often the definition has changed while it waited
  std::uint32_t open_asks = 0;  // server-initiated requests and input requests; see Asks
  std::unique_ptr<ParkedCall> parked;
  std::unique_ptr<CallInput> input;  // null unless its server may ask for input; see InputRounds

  Exchange *exchange = nullptr;             // null if the call is not on a lane
  const AnswerForm *answer_form = nullptr;  // of the server to which it was sent; may be null
  Lane *watches = nullptr;  // the lane on which it recorded a subscription, to be undone on failure
  TaskRole task = TaskRole::none;  // set when it is sent
  // Capabilities of clients that the gateway has declared to the server. Set when it is sent.
  ClientCaps declared = 0;
  // The connection on which a task that this call creates exists; see TaskId. Set when the call is
  // sent.
  std::uint64_t connection = 0;
  CreatedTask created;                 // the task is cancelled if the call ends while this is set
  std::unique_ptr<TaskBridge> bridge;  // null unless it concerns a task of the other generation
  Account account;

  Call *session_prev = nullptr, *session_next = nullptr;

  // Used by the CallLoop.
  CallEvents events;
  bool queued = false;
  Call *queued_next = nullptr, *ended_next = nullptr;

  void clear();
};

using SessionCalls = IntrusiveList<Call, &Call::session_prev, &Call::session_next>;
using CallTable = NumberedTable<Call>;

// Returns the lane to which the call was submitted, or null if the call is not on a lane.
Lane *lane_of(const Call &call) noexcept;
// Used by lanes: queue_in_lane() parks a call that has to wait before it is sent, and
// take_from_lane() returns what was parked when the call is sent. The order of the queued calls is
// kept by the lane.
void queue_in_lane(Call &call, const CallInHand &hand);
std::unique_ptr<ParkedCall> take_from_lane(Call &call);
// While a call waits for its client to repeat the request, the call does not count towards the
// server's max_in_flight, so the lane may send another call.
void give_up_place(Call &call);
void take_place_again(Call &call) noexcept;
// Returns true if the call was passed to a connector or tools plugin, so the server may have
// executed it.
bool was_sent(const Call &call) noexcept;
// Like was_sent(), but also returns true if the call was sent before and now waits for input, waits
// for the next request about its task, or is being sent again.
bool may_have_run(const Call &call) noexcept;
// Stores what is needed to send the call again with the client's input. `declared` contains the
// capabilities that the request declares to the server. If the client's request already has members
// that only a repeated request has (see Repetition), stores nothing and returns false.
bool keep_for_input(Call &call, const CallInHand &hand, ClientCaps declared);

}  // namespace bulkhead
