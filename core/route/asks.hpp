// Requests of servers to clients (elicitation, sampling, roots), and the clients' answers.
//
// An ask reaches only the client whose call caused it; see Attribution. If that is not one client,
// the ask is refused, never guessed. Which of that client's calls it was a pipe does not say: the
// ask stands as long as any of them, and all of them wait for it.
//
// Owner: the Router. Thread: [io]. Bounds: limits.asks_per_session, limits.ask_timeout_ms.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/slots.hpp"
#include "route/attribution.hpp"
#include "route/client_answers.hpp"
#include "route/deadlines.hpp"
#include "route/judged_events.hpp"
#include "route/lane.hpp"
#include "route/message.hpp"

namespace bulkhead {

class Asks {
 public:
  // The gateway's own questions: about calls that a person is to approve.
  class Forms {
   public:
    virtual ~Forms() = default;
    virtual void form_answered(std::uint64_t call, const Message &answer) = 0;
    // The client cannot be asked, or no longer.
    virtual void form_lost(std::uint64_t call) = 0;
  };
  struct Needs {
    const Gate &gate;
    Attribution &attribution;
    Sessions &sessions;
    CallTable &calls;
    Deadlines &deadlines;
    ClientAnswers &answers;
    JudgedEvents &events;
    RouterCounters &counters;
    const Limits &limits;
    Reactor &reactor;
    // A message of this server, or to it, could not be rewritten and goes nowhere.
    std::function<void(const Lane &lane, mcp::Method method)> on_lost;
    Forms &forms;
  };
  // first_generation: of the numbers that clients see; see random_generation().
  Asks(std::uint32_t first_generation, Needs needs);
  ~Asks();
  Asks(const Asks &) = delete;
  Asks &operator=(const Asks &) = delete;

  // ---- from servers ----
  // hint: the exchange on whose stream it came; 0: the wire does not say.
  void request(Lane &lane, std::uint64_t hint, const Message &message);
  // The server has taken a request of its own back.
  void cancelled(Lane &lane, const Message &message);
  // It asks with a progress token that is none.
  void refuse_malformed(Lane &lane, const Message &message);

  // ---- from clients ----
  void answered(Session &session, const Message &message);
  // Progress of an ask, to be sent to its server under the server's own token. Nothing: there is
  // no such ask, or its server wants none.
  struct Progress {
    Lane *lane;
    std::string token;
  };
  Progress progress_of(const Session &session, const Message &message) const;

  // ---- what the policy has decided later ----
  void ask_judged(Lane &lane, std::uint64_t hint, const Message &message);
  void answer_judged(std::uint64_t ask, const Message &message);
  void ask_refused(Lane &lane, std::string_view id, mcp::Method method);
  void answer_refused(std::uint64_t ask);

  // ---- the gateway's own ----
  // A place for a question about this call; its number is the JSON-RPC id.
  std::uint64_t open_form(Session &session, std::uint64_t call, std::uint64_t timeout_ms);
  // The question has been answered elsewhere, or withdrawn: the client is notified.
  void close_form(std::uint64_t call);

  // ---- ends ----
  // A call that had caused asks, or may have, is over: those that no other call may have caused
  // end. tell_server: with an answer.
  void call_ended(std::uint64_t call, bool tell_server);
  // The client no longer answers; the servers that asked get an error.
  void session_ended(bh_session session);
  // The lane's connection: what its server had asked is void, and clients are notified.
  void connection_lost(Lane &lane);

 private:
  struct Ask {
    bh_session session = 0;
    Lane *lane = nullptr;               // null: the gateway's own
    std::string upstream_id;            // its id token
    std::string upstream_token;         // its progress token
    std::uint64_t call = 0;             // the call that caused it, 0: unknown
    std::vector<std::uint64_t> others;  // or one of these did: the wire does not say
    mcp::Method method = mcp::Method::none;
    std::uint64_t deadline_ns = 0;
    bool answered = false;  // the policy is being asked about the answer
  };
  enum class Refusal : std::uint8_t { undeclared, nobody, by_policy, malformed };
  enum class Judged : std::uint8_t { no, yes };

  void ask_client(Lane &lane, std::uint64_t hint, const Message &message, Judged judged);
  bool passes_policy(Lane &lane, std::uint64_t hint, const Message &message, const Session &client,
                     const Call *call);
  void put(Lane &lane, std::uint64_t hint, const Message &message, Session &client,
           const Call *call);
  void refuse(Lane &lane, std::string_view id, mcp::Method method, Refusal why);
  bool judge_answer(const Session &session, std::uint64_t handle, Ask &ask, const Message &message);
  void pass_answer(std::uint64_t handle, const Message &message);
  void suspend(std::uint64_t call);
  void resume(std::uint64_t call);
  void remove(std::uint64_t handle);
  ReplyTo asked_of(const Ask &ask);
  enum class Tell : std::uint8_t { server, client, both };
  void end_where(const std::function<bool(const Ask &)> &which, Tell tell);
  void end_one(std::uint64_t handle, Tell tell);
  void start_timer();
  void expire();

  const Needs needs_;
  Slots<Ask> asks_;
  std::uint64_t timer_ = 0;
};

}  // namespace bulkhead
