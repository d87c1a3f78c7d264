// Data that outlives a session in this process: the session's record in the ledger, for the next
// process, and the ids of evicted sessions that clients may resume.
//
// Owner: the Router. Runs on the reactor thread. Limits: those of Ledger and Reopening.
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

  // Must be called before any session is open. Borrowed. If null, sessions do not continue in
  // another process.
  void use(Ledger *ledger);
  Ledger *ledger() noexcept { return ledger_; }

  // ---- sessions that clients identify by an id ----
  // Called when the session id has been sealed. The transport uses `id` to find the session.
  void remember(bh_session session, std::string_view id, SealTime sealed);
  // Called when the session's recorded data has changed.
  void save(const Session &session);
  // Called when the session ends together with its record.
  void forget(Session &session);
  // Called when the session ends but its client may resume it. Its record is kept if the sealed id
  // alone is not sufficient to restore it. Must be called before forget().
  void evict(Session &session);
  // Called when the session ends permanently.
  void end(const Session &session);
  // Returns true if the session has not ended permanently and its seal has not expired. See
  // Reopening.
  bool may_reopen(std::string_view id, SealTime sealed, bool takes_earlier) const {
    return reopening_.allows(id, sealed, reactor_.now_ns(), idle_ns(), takes_earlier);
  }
  // Called when the session was resumed. Finds the session's record.
  void reopened(Session &session, std::string_view id, SealTime sealed);
  // Called when ids of sessions of earlier processes are no longer valid.
  void too_old();

  // ---- the carried session: that of the client connected to the process itself; see Ledger ----
  // Returns true if carry() can succeed.
  bool carries() const noexcept { return ledger_ != nullptr && carried_ == 0; }
  void carry(Session &session);
  bh_session carried() const noexcept { return carried_; }
  bool is_carried(bh_session session) const noexcept {
    return carried_ != 0 && session == carried_;
  }
  // Called before a request of the carried session is handled. Registers the request beforehand,
  // because handling it may end this process and must not end the next one.
  void request(const ReplyTo &reply, const Message &request) {
    if (is_carried(reply.session)) add_request(reply.stream, request);
  }
  // Called when the carried client's messages have been inspected.
  void commit(bh_session session) noexcept {
    if (is_carried(session)) ledger_->commit();
  }
  void note(bh_session session, std::uint64_t note);
  void settle(bh_session session, std::uint64_t stream);
  // Returns false if there are too many bytes (BH_E_LIMIT).
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
