// What outlives a session's end in this process: its record in the ledger, for the next process,
// and the ids of evicted sessions, whose clients may come back. Owner: the Router. Thread: [io].
//
// Bounds: those of Ledger and of Evicted.
#pragma once

#include <cstdint>
#include <string_view>

#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/ledger.hpp"
#include "route/message.hpp"
#include "route/reopening.hpp"
#include "route/reply_to.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

class SessionJournal {
 public:
  SessionJournal(Sessions &sessions, Reactor &reactor, const Limits &limits)
      : sessions_(sessions), reactor_(reactor), limits_(limits) {}
  ~SessionJournal() { reactor_.forget(this); }
  SessionJournal(const SessionJournal &) = delete;
  SessionJournal &operator=(const SessionJournal &) = delete;

  // Before any session is open. Borrowed; null: no session continues in another process.
  void use(Ledger *ledger);
  Ledger *ledger() noexcept { return ledger_; }

  // ---- sessions that their clients name ----
  // The session has been sealed. `id`: what the transport will find it by.
  void remember(bh_session session, std::string_view id, SealTime sealed);
  // What the record holds has changed.
  void save(const Session &session);
  // The session ends, and its record with it.
  void forget(Session &session);
  // The session ends so that its client can take it up again. Its record stays if the sealed id
  // alone cannot bring it back. Before forget().
  void evict(Session &session);
  // The session ends for good.
  void end(const Session &session);
  // Whether it has not ended for good, and its seal has not expired. See Reopening.
  bool may_reopen(std::string_view id, SealTime sealed, bool takes_earlier) const {
    return reopening_.allows(id, sealed, reactor_.now_ns(), idle_ns(), takes_earlier);
  }
  // It has been taken up again: finds what was recorded of it.
  void reopened(Session &session, std::string_view id, SealTime sealed);
  // Ids of sessions of earlier processes no longer mean anything.
  void too_old();

  // ---- the session of the client that comes with the process; see Ledger ----
  // Whether carry() can succeed.
  bool carries() const noexcept { return ledger_ != nullptr && carried_ == 0; }
  void carry(Session &session);
  bh_session carried() const noexcept { return carried_; }
  bool is_carried(bh_session session) const noexcept {
    return carried_ != 0 && session == carried_;
  }
  // Its request is about to be handled, which may end this process, and must not end the next one.
  void request(const ReplyTo &reply, const Message &request) {
    if (is_carried(reply.session)) add_request(reply.stream, request);
  }
  // What it has sent has been looked at.
  void commit(bh_session session) noexcept {
    if (is_carried(session)) ledger_->commit();
  }
  void note(bh_session session, std::uint64_t note);
  void settle(bh_session session, std::uint64_t stream);
  // BH_E_LIMIT if false.
  bool keep(bh_session session, std::string_view bytes, bool more);
  void taken(bh_session session, std::uint64_t n);

 private:
  void add_request(std::uint64_t stream, const Message &request);
  std::uint64_t idle_ns() const noexcept { return limits_.session_idle_ms * 1'000'000u; }

  Sessions &sessions_;
  Reactor &reactor_;
  const Limits &limits_;
  Reopening reopening_;
  Ledger *ledger_ = nullptr;
  bh_session carried_ = 0;
};

}  // namespace bulkhead
