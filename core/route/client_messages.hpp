// What clients send, taken apart: requests and notifications go to the edge of their generation of
// the protocol, answers to Asks. The counterpart of WireEdge. Owner: the Router. Thread: [io].
//
// Bounds: limits.message_bytes; 256 messages in a batch.
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
    ClientEdge &edge;  // gets what no other edge speaks
  };
  explicit ClientMessages(Needs needs) : needs_(std::move(needs)), edges_{&needs_.edge} {}

  // Another generation, asked before those that are there. Borrowed.
  void add(ClientEdge &edge) { edges_.insert(edges_.begin(), &edge); }

  // True if an answer has been or will be sent. The session may have ended when this returns.
  bool handle(Session &session, const ReplyTo &reply, std::string_view message, bh_delivery *out);
  // A request by itself: one that has waited, or one that is made for the client.
  void request(Session &session, Incoming &request) {
    handle_request(session, edge_of(session, *request.message.scan), request);
  }

 private:
  bool take_apart(const ReplyTo &reply, std::string_view message, mcp::Scan *scan,
                  bh_delivery *out);
  ClientEdge &edge_of(const Session &session, const mcp::Scan &scan) const;
  void handle_request(Session &session, ClientEdge &edge, Incoming &request);
  void notification(Session &session, ClientEdge &edge, const Message &message);
  bool batch(Session &session, const ClientEdge &edge, const ReplyTo &reply,
             std::string_view message);

  const Needs needs_;
  std::vector<ClientEdge *> edges_;
};

}  // namespace bulkhead
