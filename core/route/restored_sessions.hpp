// Sessions that continue in this process: those of an earlier one, and those that were evicted.
// What their clients had set up is set up again as soon as the servers have answered. Owner: the
// Router. Thread: [io].
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
    std::function<void()> on_idle;  // what was owed has been answered
  };
  explicit RestoredSessions(Needs needs)
      : needs_(std::move(needs)), continuing_(needs_.reactor, [this] { continue_all(); }) {}

  // Makes a fresh session what it was in an earlier process, or before it was evicted. The client
  // has its former lists, so it is notified that they may have changed.
  void restore(bh_session session, std::uint8_t revision, ClientCaps caps, std::string_view id,
               SealTime sealed);
  // Makes a fresh session the one of the client that comes with the process: restored, if an
  // earlier process had it and its handshake was over. What that process owed the client is
  // answered in a later turn. Nothing: this process can carry no (further) client.
  struct Carried {
    bool restored = false;
    std::uint64_t last_stream = 0, note = 0;
    std::string_view unread;  // until the next SessionJournal::keep()
  };
  std::optional<Carried> carry(bh_session session);

  // The view's lists are complete, or others: what its restored clients had is set up.
  void lists_ready(View &view);
  // Answers are owed to the carried client.
  bool owes() const noexcept { return !owed_.empty(); }

 private:
  void read_record(Session &session);
  void continue_all();
  void answer_owed_requests();
  void subscribe_again(bh_session session);

  const Needs needs_;
  std::vector<LedgerRequest> owed_;  // answers to the carried client
  OncePerTurn continuing_;
};

}  // namespace bulkhead
