// Stores the data that allows sessions to be resumed: records in the ledger, for resuming sessions
// after a restart of the process, and the ids of ended and evicted sessions.
//
// Owner: the Router. Runs on the reactor thread. Limits: see Ledger and Reopening.
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

  // Sets the ledger, which is borrowed. Must be called before the first session is opened. If
  // `ledger` is null, the next process gets no data except the state in sealed session ids.
  void use(Ledger *ledger);
  Ledger *ledger() noexcept { return ledger_; }

  // ---- sessions that clients identify by an id ----
  // Called when the session id has been sealed. `id` is the transport's id of the session.
  void remember(bh_session session, std::string_view id, SealTime sealed);
  // Writes the session's record again. Called when the recorded data has changed.
  void save(const Session &session);
  // Removes the record of the session.
  void forget(Session &session);
  // Called before forget() if the session ends but its client may resume it. Keeps the record if it
  // contains a log level or subscriptions, which the sealed id does not contain.
  void evict(Session &session);
  // Called when the session ends permanently.
  void end(const Session &session);
  // Returns true if a client may resume the session with this id; see Reopening.
  bool may_reopen(std::string_view id, SealTime sealed, bool takes_earlier) const {
    return reopening_.allows(id, sealed, reactor_.now_ns(), idle_ns(), takes_earlier);
  }
  // Called when a session has been resumed. The new session takes over the record of the previous
  // one, if there is a record.
  void reopened(Session &session, std::string_view id, SealTime sealed);
  // Discards the records of earlier processes that no session has taken over. Called when the
  // session ids of these processes are no longer valid.
  void too_old();

  // ---- the carried session; see Ledger ----
  // Returns true if a client can be carried.
  bool carries() const noexcept { return ledger_ != nullptr && carried_ == 0; }
  void carry(Session &session);
  bh_session carried() const noexcept { return carried_; }
  bool is_carried(bh_session session) const noexcept {
    return carried_ != 0 && session == carried_;
  }
  // Stores a request of the carried session in the ledger. Must be called before the request is
  // handled: if handling the request crashes this process, the next process must respond to it with
  // an error instead of handling it again.
  void request(const ReplyTo &reply, const Message &request) {
    if (is_carried(reply.session)) add_request(reply.stream, request);
  }
  // Called when all requests in the received bytes have been stored; see Ledger::commit().
  void commit(bh_session session) noexcept {
    if (is_carried(session)) ledger_->commit();
  }
  void note(bh_session session, std::uint64_t note);
  void settle(bh_session session, std::uint64_t stream);
  // Stores bytes that have been received but not handled; see Ledger::keep(). Returns false if the
  // bytes do not fit or the session is not the carried one.
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
