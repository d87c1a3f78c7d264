// Asks clients of MCP 2026-07-28. In this revision, servers do not send requests. Therefore, the
// requests of servers and the gateway's approval forms (see Asks) are sent to the client as results
// of the type input_required, and the client answers by repeating its request.
//
// When the first ask of a call arrives, the call is parked (ParkedInputs). The call keeps its
// session, but messages to this session now go to this class. A new session takes over the client's
// request and its stream. Asks are collected for ParkedInputs::window_ms; then the client's request
// is answered. Each repeated request arrives in its own session and waits for the next round or for
// the end of the call. Its inputResponses are handled like the answers of other clients (policy,
// forms, servers). The request pipeline and its stages therefore do not depend on how a client is
// asked.
//
// If the client gives up the last request that waits for a call, the call is cancelled. After the
// client has been asked, the call continues although no request waits for it. The call is ended if
// the client does not answer in time, or if room is needed for another call (see ParkedInputs).
//
// Runs on the reactor thread. Owned by the Router. Limits: those of ParkedInputs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/asks.hpp"
#include "route/call_ends.hpp"
#include "route/client_answers.hpp"
#include "route/parked_inputs.hpp"
#include "route/request_states.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

class ClientInputs final : public Asks::Inputs {
 public:
  struct Needs {
    const Limits &limits;
    Reactor &reactor;
    Sessions &sessions;
    CallTable &calls;
    ClientAnswers &answers;
    Asks &asks;
    CallEnds &ends;
    const RequestStates &states;
    // Connects the session to another ClientEnd. Returns the session that takes over its request,
    // or null if the client is gone.
    std::function<Session *(Session &session, ClientEnd &end)> hand_over;
    std::function<void(bh_session session)> close;
  };
  ClientInputs(const ParkedLimits &limits, std::uint32_t first_generation, Needs needs);
  ~ClientInputs() override;
  ClientInputs(const ClientInputs &) = delete;
  ClientInputs &operator=(const ClientInputs &) = delete;

  // ---- Asks::Inputs ----
  std::string ask(Call &call, std::uint64_t ask, const AskText &text) override;
  void withdrawn(bh_session session, std::uint64_t ask) override;

  // ---- clients ----
  // Answers a repeated request for a parked call, now or later.
  void repeat(Session &session, Incoming &request, const ParkedTicket &ticket,
              std::string_view responses);
  // Returns true if the request of this session waits for a parked call.
  bool has(const Session &session) const { return waiting_.contains(session.handle); }
  // Called when the client has cancelled the waiting request.
  void cancel(const Session &session, const Message &notification);
  // Called when the session is about to end.
  void ended(const Session &session);

  // Called when the rules have changed. Stored results were evaluated by other rules, so no client
  // receives them any longer.
  void rules_changed() { inputs_.forget_ends(); }

  std::size_t size() const noexcept { return inputs_.size(); }  // for tests

 private:
  // The ClientEnd of a parked call's session. Receives the messages that the pipeline sends to it.
  struct Inner final : ClientEnd {
    Inner(ClientInputs &inputs, std::uint64_t parked) : owner(inputs), number(parked) {}
    void send(const bh_outgoing &message) override { owner.sent(number, message); }
    void session_ended(bh_session, std::string_view) override {}
    ClientInputs &owner;
    const std::uint64_t number;
  };
  // A client's request that waits for the next round or the end of a parked call.
  struct Waiting {
    ReplyTo reply;
    std::string id;  // JSON token
    std::uint64_t number = 0;
  };

  std::string park(Call &call, ParkedAsk ask);
  void sent(std::uint64_t number, const bh_outgoing &message);
  void sent_answer(std::uint64_t number, const bh_outgoing &message);
  void continue_call(std::uint64_t number, const Session &session, const Message &request);
  void deliver(std::uint64_t number, const std::vector<ParkedInput::Answer> &answers);
  void close_round(const ParkedInputs::Due &due);
  void end_unanswered(const ParkedInputs::Due &due);
  void end_evicted(const ParkedInputs::Due &due);
  void send_round(const ReplyTo &reply, std::string_view id, std::uint64_t number);
  void send_end(const ReplyTo &reply, std::string_view id, std::string_view end,
                std::uint32_t http_status);
  Call *call_of(std::uint64_t number);
  bool awaits_end(std::uint64_t number);
  void start_timer();
  void turn();

  const Needs needs_;
  ParkedInputs inputs_;
  std::unordered_map<bh_session, std::unique_ptr<Inner>> inners_;  // by the calls' sessions
  std::unordered_map<bh_session, Waiting> waiting_;  // by the sessions of the waiting requests
  std::uint64_t timer_ = 0, timer_ns_ = 0;
};

}  // namespace bulkhead
