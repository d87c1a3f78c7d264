// Messages beside calls that a policy judges: what servers ask clients, what these answer, and
// notifications both ways. What it has not judged goes nowhere, as with calls; none of it is a call
// of its own: it is not counted, no person is asked about it, and only what is refused is recorded.
// Owner: the Router. Thread: [io].
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
    ask,          // a server's request to a client
    answer,       // the client's answer to it
    to_client,    // a server's notification
    to_server,    // a client's
    subscription  // that stands, when the rules are others
  };
  Kind kind = Kind::ask;
  mcp::Method method = mcp::Method::none;
  std::string method_text;  // as the message spells it
  std::string server;       // its name
  std::string tool;         // of the call that it belongs to, if that is known
  ReplyTo to;               // its client; to_client: the stream, too
  bh_lane lane = 0;         // the server's connection; 0: it runs in place
  std::uint64_t hint = 0;   // ask: of its exchange
  std::uint64_t ask = 0;    // answer: to which
  std::uint64_t call = 0;   // to_client: dropped once this call has ended; 0: never dropped
  std::string id;           // ask: the server's id token; subscription: its URI token
  std::string message;      // as it is to be sent; of asks and answers as it came
};

class JudgedEvents {
 public:
  // Completes an event whose decision came later, or that is refused.
  class Outcome {
   public:
    virtual ~Outcome() = default;
    // It may pass. Time has passed, too: its sender and receiver may have gone.
    virtual void pass(const JudgedEvent &event) = 0;
    // It has been recorded; its sender is to be notified.
    virtual void refused(const JudgedEvent &event) = 0;
    // The server is (still) one of the profile's.
    virtual bool serves(std::string_view server) const = 0;
  };
  struct Needs {
    const Gate &gate;
    Sessions &sessions;
    DuplicateChecks &checks;  // whose results come to checked()
    WaitingBytes &waiting;
    Recorder &recorder;
    RouterCounters &counters;
    const Limits &limits;
    Reactor &reactor;
    std::function<void(std::int32_t level, std::string_view text)> log;
    // The policy's answer under this number is no longer awaited; late: because of its time-out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
    Outcome &outcome;
  };
  explicit JudgedEvents(Needs needs);
  ~JudgedEvents();
  JudgedEvents(const JudgedEvents &) = delete;
  JudgedEvents &operator=(const JudgedEvents &) = delete;

  // True: it may pass now. Else it has been refused, or the decision is pending.
  // `session`: whose it is. `body`: params or result, which the policy reads.
  bool judge(JudgedEvent event, const Session &session, std::string_view body);

  // What the pool and the policy say later is about an event, not about a call.
  bool has(std::uint64_t number) const { return waiting_.contains(number); }
  void checked(std::uint64_t number, bool duplicates);
  void decided(std::uint64_t number, const Gate::Decision &decision);

  // The server has taken this request back.
  void drop_ask(bh_lane lane, std::string_view id);

 private:
  struct Waiting {
    JudgedEvent event;
    KeptText body;  // of one that is looked at on the pool first
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
