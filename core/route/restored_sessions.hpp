// Sessions that continue in this process: sessions of an earlier process, and evicted sessions. The
// state set by their clients is restored after the servers have responded.
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
    // Handles a request as if the client had sent it.
    std::function<void(Session &, Incoming &)> handle;
    std::function<void()> on_idle;  // called when all pending answers have been sent
  };
  explicit RestoredSessions(Needs needs)
      : needs_(std::move(needs)), continuing_(needs_.reactor, [this] { continue_all(); }) {}

  // Gives a new session the state that it had in an earlier process or before its eviction. The
  // client has its previous lists, so it is notified that they may have changed.
  void restore(bh_session session, std::uint8_t revision, ClientCaps caps, std::string_view id,
               SealTime sealed);
  // Binds a new session to the client that is connected to the process itself. If an earlier
  // process had this client's session and completed its handshake, the session is restored.
  // Requests that the earlier process left unanswered are answered in a later turn. Returns nullopt
  // if this process cannot carry a client or already carries one.
  struct Carried {
    bool restored = false;
    std::uint64_t last_stream = 0, note = 0;
    std::string_view unread;  // valid until the next SessionJournal::keep()
  };
  std::optional<Carried> carry(bh_session session);

  // Called when the view's lists are complete or have changed. Restores the state of the view's
  // restored clients.
  void lists_ready(View &view);
  // Returns true while answers to the carried client are pending.
  bool owes() const noexcept { return !owed_.empty(); }

 private:
  void read_record(Session &session);
  void continue_all();
  void answer_owed_requests();
  void subscribe_again(bh_session session);

  const Needs needs_;
  std::vector<LedgerRequest> owed_;  // requests of the carried client that need an answer
  OncePerTurn continuing_;
};

}  // namespace bulkhead
