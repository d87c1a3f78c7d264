// The sessions of clients, as transports use them: open, deliver, close. A sessionless message is
// handled in a temporary session that ends when the message is answered, even if it arrived in a
// session of the transport (a pipe, or a guest's connection).
//
// Runs on the reactor thread. Owned by the Router. Limits: at most limits.sessions sessions, the
// same number of pending sessionless messages, and limits.in_flight_per_session pending sessionless
// requests of each client, except subscriptions/listen (see ClientLoad and Listens).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bulkhead/abi/ext/transport.h"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/approval_desk.hpp"
#include "route/asks.hpp"
#include "route/call_ends.hpp"
#include "route/call_loop.hpp"
#include "route/client_inputs.hpp"
#include "route/client_load.hpp"
#include "route/client_messages.hpp"
#include "route/client_status.hpp"
#include "route/listens.hpp"
#include "route/recent_clients.hpp"
#include "route/recorder.hpp"
#include "route/request_scopes.hpp"
#include "route/session_journal.hpp"
#include "route/sessionless.hpp"
#include "route/sessions.hpp"
#include "route/subscriptions.hpp"
#include "route/views.hpp"

namespace bulkhead {

class Calls;

class Clients {
 public:
  struct Needs {
    const Limits &limits;
    Reactor &reactor;
    Sessions &sessions;
    SessionJournal &journal;
    ClientMessages &messages;
    ClientAnswers &answers;
    Views &views;
    Calls &calls;
    const CallLoop &loop;
    CallEnds &ends;
    Asks &asks;
    ApprovalDesk &desk;
    Subscriptions &subscriptions;
    Listens &listens;
    ClientInputs &inputs;
    const Recorder &recorder;
    std::function<void(std::int32_t level, std::string_view text)> log;
    std::function<void()> on_idle;  // a session or its input has ended
  };
  explicit Clients(Needs needs);
  ~Clients();
  Clients(const Clients &) = delete;
  Clients &operator=(const Clients &) = delete;

  // Fails with BH_E_UNAVAILABLE if the gateway is stopping, and with BH_E_LIMIT if limits.sessions
  // is reached. `end` is borrowed until the session is closed.
  bh_status open(ClientEnd &end, const bh_peer &peer, bh_session *out, bh_error *error);
  // Handles a message of this session. Returns BH_STALE if there is no such session. `headers` is
  // null if the transport has no headers.
  bh_status deliver(bh_session session, std::uint64_t stream, std::string_view message,
                    bh_delivery *out, const WireHeaders *headers = nullptr);
  // Implements bh_host_transport.deliver(). Sessionless messages are answered on `end`.
  bh_status deliver_message(ClientEnd &end, const bh_incoming &message, bh_delivery *out);
  // Opens a session for a sessionless request that arrived in a session of the transport. Returns
  // null if too many requests are pending.
  Session *open_request(Session &connection, const Incoming &request);
  // Counts a sessionless request until it is answered. Returns false if too many requests of its
  // client are pending. Does not count subscriptions/listen, which has a separate limit.
  bool count_request(Session &session, const Incoming &request) const;
  // Connects the session of a sessionless request to `end`, which has no transport. Returns the
  // session that takes over the request and its stream, or null if the client is gone.
  Session *hand_over(Session &session, ClientEnd &end);
  // Cancels the sessionless message on this stream.
  void stream_gone(const ClientEnd &end, std::uint64_t stream);
  // `how` is BH_SESSION_*.
  void close(bh_session session, std::uint32_t how);
  // Ends all sessions for this reason and refuses new ones.
  void end_all(std::string_view reason);

  // Sets the name of the client's process for all subsequent messages of the session.
  void set_process_name(bh_session session, std::string_view name);
  // The facts of a session that are sealed into its id. facts() returns nullopt if the session is
  // unknown or not initialized.
  struct Facts {
    std::uint8_t revision = 0;
    ClientCaps caps = 0;
    std::string principal;
  };
  std::optional<Facts> facts(bh_session session) const;
  // Returns the clients with open sessions, grouped by claimed name, process name, transport and
  // revision, and the clients of recent sessionless requests. Returns at most
  // ClientStatus::max_listed groups.
  std::vector<ClientStatus> list() const;
  // Excludes the sessions of sessionless messages.
  std::size_t count() const noexcept { return needs_.sessions.size() - sessionless_count_; }

 private:
  bh_status check_incoming(const ClientEnd &end, const bh_incoming &message, bh_error *error);
  bh_status deliver_sessionless(ClientEnd &end, const bh_incoming &message, bh_delivery *out);
  void end_sessionless(Session &session);
  Session &add(ClientEnd &end, const bh_peer &peer, std::shared_ptr<ClientLoad> load);
  Session &add_like(const Session &other);
  void end_input(Session &session);
  void end(Session &session);
  void close_later(Session &session, std::uint32_t how);
  void leave_client(Session &session);
  void close_pending();

  const Needs needs_;
  SessionlessStreams sessionless_;
  RecentClients recent_;
  RequestScopes scopes_;
  ClientLoads loads_;
  std::size_t sessionless_count_ = 0;  // sessions of sessionless messages
  std::vector<std::pair<bh_session, std::uint32_t>> closing_;
  bool ending_ = false;
};

}  // namespace bulkhead
