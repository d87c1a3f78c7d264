// Scans messages from clients. Requests and notifications are passed to the edge of their protocol
// generation, and responses are passed to Asks. The counterpart for servers is WireEdge.
//
// Runs on the reactor thread. Owned by the Router. Limits: limits.message_bytes; 256 messages per
// batch.
#pragma once

#include <string_view>
#include <vector>

#include "bulkhead/abi/ext/transport.h"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/asks.hpp"
#include "route/call.hpp"
#include "route/client_answers.hpp"
#include "route/client_edge.hpp"
#include "route/counters.hpp"
#include "route/recorder.hpp"
#include "route/session_journal.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

class ClientMessages {
 public:
  struct Needs {
    const Profile &profile;
    Reactor &reactor;
    RouterCounters &counters;
    Sessions &sessions;
    const CallTable &calls;
    Recorder &recorder;
    SessionJournal &journal;
    ClientAnswers &answers;
    Asks &asks;
    ClientEdge &edge;  // handles messages that no other edge accepts
  };
  explicit ClientMessages(Needs needs) : needs_(needs), edges_{&needs_.edge} {}

  // Adds an edge, which is tried before all existing edges. The edge is borrowed.
  void add(ClientEdge &edge) { edges_.insert(edges_.begin(), &edge); }

  // Returns true if a response was sent or will be sent. If a sessionless request begins a session,
  // does not handle the request, sets Session::sessionless and returns false. The session may have
  // ended when this function returns. `headers` is null if the transport has no headers.
  bool handle(Session &session, const ReplyTo &reply, std::string_view message, bh_delivery *out,
              const WireHeaders *headers = nullptr);
  // Handles a request that was parked, or a request that the gateway sends on behalf of the client.
  void request(Session &session, Incoming &request) {
    handle_request(session, edge_of(session, request.message, request.headers), request);
  }

 private:
  bool take_apart(const ReplyTo &reply, std::string_view message, mcp::Scan *scan,
                  bh_delivery *out);
  bool refuse_response(const ReplyTo &reply, bh_delivery *out);
  ClientEdge &edge_of(const Session &session, const Message &message,
                      const WireHeaders *headers) const;
  void handle_request(Session &session, ClientEdge &edge, Incoming &request);
  void notification(Session &session, ClientEdge &edge, const Message &message);
  bool batch(Session &session, const ClientEdge &edge, const ReplyTo &reply,
             std::string_view message);

  const Needs needs_;
  std::vector<ClientEdge *> edges_;
};

}  // namespace bulkhead
