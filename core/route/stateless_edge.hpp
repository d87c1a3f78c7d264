// The client edge of MCP 2026-07-28. In params._meta, each request states its revision, the
// client's capabilities and, optionally, the client's name and a log level. Each request is handled
// in a session of its own, even if it arrives in a session of the transport. The request's session
// ends when the request has been answered. The revision, capabilities and log level of earlier
// requests have no effect.
//
// The client receives server-initiated requests and the gateway's approval forms as results; see
// ClientInputs.
//
// Runs on the reactor thread. Owned by the Router.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "profile/profile.hpp"
#include "route/call_ends.hpp"
#include "route/capability_sets.hpp"
#include "route/client_edge.hpp"
#include "route/client_inputs.hpp"
#include "route/client_requests.hpp"
#include "route/counters.hpp"
#include "route/listens.hpp"
#include "route/stateless_form.hpp"
#include "route/views.hpp"

namespace bulkhead {

class StatelessEdge final : public ClientEdge {
 public:
  struct Needs {
    const Profile &profile;
    RouterCounters &counters;
    Sessions &sessions;
    ClientAnswers &answers;
    ClientRequests &requests;
    Views &views;
    CallEnds &ends;
    Listens &listens;
    ClientInputs &inputs;
    const RequestStates &states;
    Reactor &reactor;
    // Opens the session of a request that arrived in a session of the transport. Returns null if
    // too many requests are pending.
    std::function<Session *(Session &connection, const Incoming &request)> open_request;
    // Counts a request that arrived without a session. Returns false if too many requests of its
    // client are pending.
    std::function<bool(Session &session, const Incoming &request)> count_request;
  };
  explicit StatelessEdge(Needs needs) : needs_(std::move(needs)) {}

  bool speaks(const Session &session, const Message &message,
              const WireHeaders *headers) const override;
  bool begins_session(const mcp::Scan &) const override { return false; }
  bool takes_batches(const Session &) const override { return false; }
  void request(Session &session, Incoming &request) override;
  void notification(Session &session, const Message &message) override;

 private:
  bool admits(Incoming &request);
  bool revision_fits(Incoming &request);
  bool headers_match(Incoming &request);
  bool method_exists(Incoming &request);
  void refuse_more(Incoming &request, std::string_view whose);
  void begin(Session &session, Incoming &request);
  void admit(Session &session, const Incoming &request);
  void replace(ClientCaps set);
  void answer(Session &session, Incoming &request);
  void answer_call(Session &session, Incoming &request);
  void refuse(Incoming &request, std::int32_t error_code, std::string_view text,
              std::uint32_t http_status, std::string_view data = {});
  Session *pending(const Session &connection, std::string_view id) const;
  void use_server_name();

  const Needs needs_;
  StatelessForm plain_{false}, cacheable_{true};
  CapabilitySets capability_sets_{CapabilitySets::for_requests};
  std::string server_name_;  // the name in the forms
  ClaimedName last_name_;    // of the previous request
};

}  // namespace bulkhead
