// Asks the policy to evaluate messages other than calls: server-initiated requests, the clients'
// answers, and notifications in both directions. Messages are forwarded only after the policy has
// decided. These messages do not count as calls, cannot require approval, and are recorded here
// only if they are refused. Existing subscriptions are evaluated in the same way after the rules
// have changed.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "bulkhead/abi/ext/connector.h"
#include "bulkhead/abi/ext/policy.h"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/counters.hpp"
#include "route/duplicate_checks.hpp"
#include "route/gate.hpp"
#include "route/recorder.hpp"
#include "route/reply_to.hpp"
#include "route/sessions.hpp"
#include "route/waiting_bytes.hpp"

namespace bulkhead {

struct JudgedEvent {
  enum class Kind : std::uint8_t {
    ask,          // a server-initiated request
    answer,       // the client's answer to an ask
    to_client,    // a notification from a server
    to_server,    // a notification from a client
    subscription  // an existing subscription after the rules have changed
  };
  Kind kind = Kind::ask;
  mcp::Method method = mcp::Method::none;
  std::string method_text;  // as spelled in the message
  std::string server;       // the server's name
  std::string tool;         // the tool of the message's call, if known; for subscription: the URI
  ReplyTo to;               // the client and, for to_client, the stream
  bh_lane lane = 0;         // for ask and to_server: the server's connection; 0: none
  // For ask: if `call` is 0, the exchange of its stream; otherwise, the number of the input
  // request.
  std::uint64_t hint = 0;
  std::uint64_t ask = 0;   // for answer: the number of the ask
  std::uint64_t call = 0;  // for to_client: once this call has ended, the message is dropped; or 0.
                           // For ask: the call that requires the input; 0 for any other ask
  std::string id;          // for ask: the server's id token; for subscription: its URI token
  std::string message;     // as it will be sent; for ask and answer: as received
};

class JudgedEvents {
 public:
  // Receives events that were refused or for which the decision was delayed.
  class Outcome {
   public:
    virtual ~Outcome() = default;
    // Called if the event may be forwarded. Its sender or receiver may already be gone. Also called
    // for an ask that was not evaluated because its client has disconnected.
    virtual void pass(const JudgedEvent &event) = 0;
    // Called after the event was refused and, if there is a telemetry plugin, recorded. If the
    // event is a request or its answer, the server that sent the request must receive a refusal.
    virtual void refused(const JudgedEvent &event) = 0;
  };
  struct Needs {
    const Gate &gate;
    Sessions &sessions;
    DuplicateChecks &checks;  // passes its results to checked()
    WaitingBytes &waiting;
    Recorder &recorder;
    RouterCounters &counters;
    const Limits &limits;
    Reactor &reactor;
    std::function<void(std::int32_t level, std::string_view text)> log;
    // Called when the policy decision for request `number` is no longer needed. `late` is true if
    // the policy request timed out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
    Outcome &outcome;
  };
  explicit JudgedEvents(Needs needs);
  ~JudgedEvents();
  JudgedEvents(const JudgedEvents &) = delete;
  JudgedEvents &operator=(const JudgedEvents &) = delete;

  // Returns true if the event may be forwarded now, and false if it was refused or its decision is
  // pending. `session` is the client's session. `body` contains the params or the result that the
  // policy reads.
  bool judge(JudgedEvent event, const Session &session, std::string_view body);

  // Returns true if an event with this number is waiting for its check or its decision.
  bool has(std::uint64_t number) const { return waiting_.contains(number); }
  void checked(std::uint64_t number, bool duplicates);
  void decided(std::uint64_t number, const Gate::Decision &decision);

  // Called when the server has cancelled its request.
  void drop_ask(bh_lane lane, std::string_view id);

 private:
  struct Waiting {
    JudgedEvent event;
    KeptText body;  // set while a pool thread checks it for duplicate members
    std::uint64_t deadline_ns = 0;
  };
  std::uint64_t next_number() noexcept;
  bh_policy_request request_of(const JudgedEvent &event, const Session &session,
                               std::string_view body, std::uint64_t number) const;
  Waiting *keep(JudgedEvent event, std::uint64_t number);
  void refuse(const JudgedEvent &event, const Gate::Decision &decision);
  void record(const JudgedEvent &event, const Gate::Decision &decision);
  void start_timer();
  void expire();

  const Needs needs_;
  std::map<std::uint64_t, Waiting> waiting_;  // oldest first
  std::uint32_t last_ = 0;
  std::uint64_t timer_ = 0;
};

}  // namespace bulkhead
