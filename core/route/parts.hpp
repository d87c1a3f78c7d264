// The parts of the request path that the host uses, grouped by purpose. Each class of the host
// takes only the groups that it needs and includes only the headers of the parts that it calls, so
// a change to one part does not affect the others. The references are valid for the lifetime of the
// Router.
//
// Used on the reactor thread. Owned by the Router.
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
class PinWatch;
class Recorder;
class Reload;
class RestoredSessions;
class SessionJournal;
class ToolsEdge;
class Upstreams;
class Views;
class WireEdge;
struct RouterCounters;

// Parts that handle client messages. Used by transports and by additional edges (client_edge.hpp).
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

// Parts that handle servers and the messages that they send. Used by connectors, tools plugins and
// hot reload.
struct ServerParts {
  Upstreams &list;
  LaneHost &lanes;  // required by a new Upstream
  WireEdge &wires;
  ToolsEdge &tools;
  const Draining &draining;
  Reload &reload;
};

// Parts that handle in-flight calls. Used for approvals, status and shutdown.
struct CallParts {
  Calls &pipeline;
  CallEnds &ends;
  ApprovalDesk &desk;
  const RouterCounters &counters;
};

// The policy, and the parts that wait for its decisions.
struct PolicyParts {
  Gate &gate;
  const PinWatch &pins;
  FilteredLists &lists;
  JudgedEvents &events;
  Calls &calls;

  // Passes a policy decision to the call or other message that is waiting for it. `number` is the
  // number under which the policy was asked.
  void decided(std::uint64_t number, const Gate::Decision &decision) const;
};

// The recorder, and the parts that wait until records are stored.
struct RecordParts {
  Recorder &recorder;
  Calls &calls;
  ClientAnswers &answers;

  // Called when more records may have been committed.
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
