// Server-initiated requests, called "asks" (elicitation, sampling, roots), and the clients'
// answers.
//
// An ask is sent only to the client whose call caused it; see Attribution. If that client cannot be
// determined, the ask is refused. On a pipe, several calls from one client may have caused the ask.
// The ask then suspends the deadlines of all these calls, and is withdrawn only if all of them have
// ended.
//
// An ask about a task is sent only to the task's client (TaskNotes), with the task id that this
// client knows. Such an ask belongs to the calls that wait for the task's result (tasks/result). If
// the task is unknown, the ask is answered with an error.
//
// Owner: the Router. Runs on the reactor thread. Limits: limits.asks_per_session,
// limits.ask_timeout_ms.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
#include "route/task_notes.hpp"

namespace bulkhead {

class Asks {
 public:
  // Receives the answers of clients to approval forms and input requests, which have no lane.
  class Forms {
   public:
    virtual ~Forms() = default;
    virtual void form_answered(std::uint64_t call, const Message &answer) = 0;
    // Called when the client cannot be asked or can no longer answer.
    virtual void form_lost(std::uint64_t call) = 0;
    // Called with the client's answer to an input request (see ask_input), or with a refusal that
    // was composed in its place.
    virtual void input_answered(std::uint64_t, std::uint32_t, const Message &) {}
  };
  // The content of a request to a client.
  struct AskText {
    mcp::Method method = mcp::Method::none;
    std::string_view params;      // JSON object; empty if absent
    std::uint64_t answer_ms = 0;  // how long the client may take
  };
  // Asks clients that can only be asked through the result of their own request
  // (Session::repeats_requests).
  class Inputs {
   public:
    using AskText = Asks::AskText;
    virtual ~Inputs() = default;
    // Asks the client of the call. The client's answer is passed to Asks::answered() with `ask` as
    // its id. Returns an error message if the client cannot be asked, and an empty string
    // otherwise.
    virtual std::string ask(Call &call, std::uint64_t ask, const AskText &text) = 0;
    // Called when an ask of this session has ended.
    virtual void withdrawn(bh_session session, std::uint64_t ask) = 0;
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
    // Called when a message from or to this server was dropped because it could not be rewritten.
    std::function<void(const Lane &lane, mcp::Method method)> on_lost;
    Forms &forms;
    Inputs *inputs = nullptr;  // null: no client repeats requests
  };
  // `first_generation` is the initial generation number in the request ids that clients receive;
  // see random_generation().
  Asks(std::uint32_t first_generation, Needs needs);
  ~Asks();
  Asks(const Asks &) = delete;
  Asks &operator=(const Asks &) = delete;

  // ---- from servers ----
  // `hint` is the exchange of the stream on which the request arrived, or 0 if unknown.
  void request(Lane &lane, std::uint64_t hint, const Message &message);
  // Called when the server has cancelled one of its requests.
  void cancelled(Lane &lane, const Message &message);
  // Refuses a request with an invalid progress token.
  void refuse_malformed(Lane &lane, const Message &message);

  // ---- from clients ----
  // A response that does not belong to an open ask of this session is counted and dropped.
  void answered(Session &session, const Message &message);
  // The destination for progress notifications about an ask: the server that sent the ask, and the
  // progress token that this server chose. `lane` is null if there is no such ask or its server did
  // not request progress.
  struct Progress {
    Lane *lane;
    std::string token;
  };
  Progress progress_of(const Session &session, const Message &message) const;

  // ---- delayed policy decisions ----
  // `session` is the client for which the policy has allowed the ask. If the ask would now be sent
  // to another client, it is refused.
  void ask_judged(Lane &lane, std::uint64_t hint, const Message &message, bh_session session);
  void answer_judged(std::uint64_t ask, const Message &message);
  void ask_refused(Lane &lane, std::string_view id, mcp::Method method);
  void answer_refused(std::uint64_t ask);

  // ---- input requests ----
  // One of the input requests in the result of a call. A server without sessions receives the
  // answers when the call is sent again.
  struct Input {
    std::uint32_t number;  // from 1
    mcp::Method method;
    std::string_view params;  // JSON object
  };
  // Sends the input request to the call's client. Forms::input_answered() is called with the
  // answer, either later or before this function returns.
  void ask_input(Call &call, const Input &input);
  // Called when the policy has decided about an input request after a delay: input_judged() if the
  // request is allowed, input_refused() if it is not. `message` is the request to the client.
  void input_judged(std::uint64_t call, std::uint32_t number, const Message &message);
  void input_refused(std::uint64_t call, std::uint32_t number, mcp::Method method);

  // ---- approval forms ----
  // Registers a form about this call and returns its JSON-RPC id.
  std::uint64_t open_form(Session &session, std::uint64_t call, std::uint64_t timeout_ms);
  // Sends the form to the client of the call. `params` is JSON. If the client cannot be asked,
  // calls Forms::form_lost().
  void show_form(Call &call, std::uint64_t form, std::string_view params);
  // Withdraws the call's form from the client if it is still open.
  void close_form(std::uint64_t call);

  // ---- ends ----
  // Called when a call has ended, or when its server no longer needs the answers. Ends the asks
  // that no other call can have caused, and notifies their clients. If tell_server is true, their
  // servers receive refusals.
  void call_ended(std::uint64_t call, bool tell_server);
  // Called when the client can no longer answer. The servers receive refusals.
  void session_ended(bh_session session);
  // Called when the lane's connection is lost. The server's asks end, and their clients are
  // notified.
  void connection_lost(Lane &lane);

 private:
  struct Ask {
    bh_session session = 0;
    Lane *lane = nullptr;               // null for an approval form and an input request
    std::string upstream_id;            // the server's id token
    std::string upstream_token;         // the server's progress token
    std::uint64_t call = 0;             // the call that caused it, or 0 if unknown
    std::vector<std::uint64_t> others;  // other calls that may have caused it
    std::uint32_t input = 0;            // number of the call's input request, or 0
    std::string tool;                   // if it is about a task: the task's tool
    mcp::Method method = mcp::Method::none;
    std::uint64_t deadline_ns = 0;
    bool answered = false;  // the client has answered; the policy is evaluating the answer
    std::shared_ptr<ClientLoad> load{};  // of the client
  };
  enum class Refusal : std::uint8_t { undeclared, no_client, unknown_task, by_policy, malformed };
  // no: the policy must still evaluate the request. yes: the policy does not evaluate requests.
  // late: the policy has allowed the request, after a delay, for the client `judged_for` (null if
  // that client is gone).
  enum class Judged : std::uint8_t { no, yes, late };

  void ask_client(Lane &lane, std::uint64_t hint, const Message &message, Judged judged,
                  const Session *judged_for = nullptr);
  bool answer_roots(Lane &lane, const Message &message);
  // The client that an ask concerns.
  struct Receiver {
    Session *client = nullptr;  // null: none, or not known
    Call *call = nullptr;       // the call that caused the ask; null if unknown
    // If the ask is related to a task: the server's id, which points into the message, and the
    // note of the task. Otherwise, an empty view and an unspecified note.
    std::string_view task_id{};
    TaskNote task{};
  };
  Receiver receiver_of(Lane &lane, std::uint64_t hint, const Message &message) const;
  bool passes_policy(Lane &lane, std::uint64_t hint, const Message &message, const Receiver &to);
  bool has_too_many_asks(const Session &client) const;
  std::uint64_t insert(Ask ask, const Session &client);
  void put(Lane &lane, std::uint64_t hint, const Message &message, const Receiver &to);
  void put_as_input(std::uint64_t handle, const Message &message, Call *call);
  void put_input(Call &call, const Input &input);
  bool show(Call &call, std::uint64_t handle, const AskText &text);
  void refuse(Lane &lane, std::string_view id, mcp::Method method, Refusal why);
  void refuse_input(std::uint64_t call, std::uint32_t number, mcp::Method method, Refusal why);
  static std::string refusal(mcp::Method method, Refusal why);
  bool judge_answer(const Session &session, std::uint64_t handle, Ask &ask, const Message &message);
  void pass_answer(std::uint64_t handle, const Message &message);
  void suspend(std::uint64_t call);
  void resume(std::uint64_t call);
  void remove(std::uint64_t handle);
  ReplyTo asked_of(const Ask &ask);
  void tell_client(const Ask &ask, std::string_view cancelled);
  std::uint64_t deadline_of(const Session &client) const;
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
