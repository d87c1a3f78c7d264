// The client edge for the session-based revisions, 2024-11-05 to 2025-11-25. A session starts with
// initialize.
//
// Runs on the reactor thread. Owned by the Router.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "profile/profile.hpp"
#include "route/approval_desk.hpp"
#include "route/asks.hpp"
#include "route/call_ends.hpp"
#include "route/capability_sets.hpp"
#include "route/client_edge.hpp"
#include "route/client_requests.hpp"
#include "route/counters.hpp"
#include "route/notifications.hpp"
#include "route/protocol.hpp"
#include "route/session_journal.hpp"
#include "route/subscriptions.hpp"
#include "route/views.hpp"

namespace bulkhead {

class SessionEdge final : public ClientEdge {
 public:
  struct Needs {
    const Profile &profile;
    RouterCounters &counters;
    ClientAnswers &answers;
    ClientRequests &requests;
    Views &views;
    CallEnds &ends;
    Asks &asks;
    ApprovalDesk &desk;
    Notifications &notifications;
    Subscriptions &subscriptions;
    SessionJournal &journal;
    Reactor &reactor;
    // Called when a message to this server was dropped because it could not be rewritten.
    std::function<void(const Lane &lane, mcp::Method method)> on_lost;
  };
  explicit SessionEdge(Needs needs) : needs_(std::move(needs)) {}

  bool speaks(const Session &, const Message &, const WireHeaders *) const override { return true; }
  bool begins_session(const mcp::Scan &request) const override {
    return request.method == mcp::Method::initialize;
  }
  // Only revision 2025-03-26 has batches.
  bool takes_batches(const Session &session) const override {
    return session.initialized && session.revision == batch_revision;
  }
  void request(Session &session, Incoming &request) override;
  void notification(Session &session, const Message &message) override;

  // Returns the capabilities of the session: those that the client declares or, if too many sets
  // are in use, fewer of them.
  ClientCaps admit(Session &session, ClientCaps caps);

 private:
  void initialize(Session &session, Incoming &request);
  void begin_session(Session &session, std::uint8_t revision, ClientCaps caps);
  void set_log_level(Session &session, Incoming &request);
  void pass_progress(Session &session, const Message &message);
  void pass_roots_changed(Session &session, const Message &message);
  void cancel(Session &session, std::string_view message, const mcp::Scan &scan);

  const Needs needs_;
  CapabilitySets capability_sets_{CapabilitySets::for_sessions};
};

}  // namespace bulkhead
