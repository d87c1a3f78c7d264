// The parts of the request path that a host uses, by what they are for. A class of the host uses
// the groups that it needs and includes only the headers of the parts that it calls, so that a
// change of one part does not concern the others. The references are valid as long as the Router.
//
// Thread: I/O thread. Owned by the Router.
#pragma once

#include <cstdint>

#include "route/gate.hpp"

namespace bulkhead {

class ApprovalDesk;
class CallEnds;
class Calls;
class ClientAnswers;
class ClientMessages;
class ClientRequests;
class Clients;
class Draining;
class FilteredLists;
class JudgedEvents;
class LaneHost;
class ListRequests;
class Recorder;
class Reload;
class RestoredSessions;
class SessionJournal;
class ToolsEdge;
class Upstreams;
class Views;
class WireEdge;
struct RouterCounters;

// What clients send and receive: for transports, and for a further edge (client_edge.hpp).
struct ClientParts {
  Clients &sessions;
  SessionJournal &journal;
  RestoredSessions &restored;
  ClientMessages &messages;
  ClientRequests &requests;
  ClientAnswers &answers;
  Views &views;
  ListRequests &lists;
};

// Servers, and what they send: for connectors, tools plugins and hot reload.
struct ServerParts {
  Upstreams &list;
  LaneHost &lanes;  // what a new Upstream needs
  WireEdge &wires;
  ToolsEdge &tools;
  const Draining &draining;
  Reload &reload;
};

// Calls that are in flight: for approvals, status and shutdown.
struct CallParts {
  Calls &pipeline;
  CallEnds &ends;
  ApprovalDesk &desk;
  const RouterCounters &counters;
};

// The policy, and what waits for its decisions.
struct PolicyParts {
  Gate &gate;
  FilteredLists &lists;
  JudgedEvents &events;
  Calls &calls;

  // The decision about a call or about another message, by the number under which the policy was
  // asked.
  void decided(std::uint64_t number, const Gate::Decision &decision) const;
};

// The records, and what waits until they are stored.
struct RecordParts {
  Recorder &recorder;
  Calls &calls;
  ClientAnswers &answers;

  // More records may be committed now.
  void committed() const;
};

struct RouterParts {
  ClientParts clients;
  ServerParts servers;
  CallParts calls;
  PolicyParts policy;
  RecordParts records;
};

}  // namespace bulkhead
