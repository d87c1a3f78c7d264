// Restores sessions from an earlier process and sessions that were evicted. The subscriptions of a
// client are restored after the servers have listed their items.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "catalog/names.hpp"
#include "profile/profile.hpp"
#include "reactor/once_per_turn.hpp"
#include "route/client_answers.hpp"
#include "route/recorder.hpp"
#include "route/session_journal.hpp"
#include "route/sessions.hpp"
#include "route/views.hpp"

namespace bulkhead {

class RestoredSessions {
 public:
  struct Needs {
    const Profile &profile;
    Reactor &reactor;
    const Names &names;
    Sessions &sessions;
    SessionJournal &journal;
    Views &views;
    ClientAnswers &answers;
    Recorder &recorder;
    // Handles a request as if the client had sent it.
    std::function<void(Session &, Incoming &)> handle;
    // Returns the capabilities that the session may use; see SessionEdge::admit().
    std::function<ClientCaps(Session &, ClientCaps)> admit;
    // Called after the pending requests of the earlier process have been answered.
    std::function<void()> on_idle;
  };
  explicit RestoredSessions(Needs needs)
      : needs_(std::move(needs)), continuing_(needs_.reactor, [this] { continue_all(); }) {}

  // Restores the state of an earlier session in a newly opened session. The client still uses the
  // lists from its previous session, so it is notified that they may have changed. Has no effect if
  // the session is unknown or initialized, or if the revision is invalid.
  void restore(bh_session session, std::uint8_t revision, ClientCaps caps, std::string_view id,
               SealTime sealed);
  // Binds a new session to the carried client (see Ledger). If an earlier process had a session
  // with this client and completed the handshake, that session is restored, unless an
  // initialize request is pending. Requests that the earlier process left pending receive an error
  // response at the end of the current iteration of the event loop. Returns nullopt if the session
  // is unknown, or if this process has no ledger or already carries a client.
  struct Carried {
    bool restored = false;
    std::uint64_t last_stream = 0, note = 0;
    std::string_view unread;  // valid until the next SessionJournal::keep()
  };
  std::optional<Carried> carry(bh_session session);

  // Notifies the view's restored clients that lists may have changed, and restores their
  // subscriptions. Called when the lists of the view are complete or have changed.
  void lists_ready(View &view);
  // Returns true if requests that the earlier process left pending have not been answered yet.
  bool owes() const noexcept { return !owed_.empty(); }

 private:
  void read_record(Session &session);
  void continue_all();
  void answer_owed_requests();
  void record_lost(const LedgerRequest &request);
  void subscribe_again(bh_session session);

  const Needs needs_;
  // Requests of the carried client that the earlier process left pending.
  std::vector<LedgerRequest> owed_;
  OncePerTurn continuing_;
};

}  // namespace bulkhead
