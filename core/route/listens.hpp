// Handles subscriptions/listen requests of MCP 2026-07-28. The stream of such a request stays open.
// It carries an acknowledgement that lists the accepted notifications, followed by the
// notifications themselves. An accepted request gets a response only when the gateway shuts down;
// a cancelled request gets none.
//
// List changes come from the view of the request's session. Each resource is subscribed to in the
// same way as for a client with a session, so the policy evaluates every subscription. The
// acknowledgement waits up to resource_wait_ms for the subscriptions and omits those that have not
// been accepted by then. Their subscribe requests are ended.
//
// A listen request is not a call: it has no timeout and does not count towards
// limits.in_flight_per_session. Instead, this limit applies to all subscribe requests of a client's
// listen requests: when one of them has a response, the next one is sent.
//
// Runs on the reactor thread. Owned by the Router. Limits: limits.listens_per_client listen
// requests per connection (over HTTP: per principal); limits.subscriptions_per_session resources
// per listen request.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/call_ends.hpp"
#include "route/client_answers.hpp"
#include "route/client_requests.hpp"
#include "route/message.hpp"
#include "route/recorder.hpp"
#include "route/sessions.hpp"
#include "route/subscriptions.hpp"
#include "route/views.hpp"

namespace bulkhead {

class Listens {
 public:
  static constexpr std::uint64_t resource_wait_ms = 1'000;

  struct Needs {
    const Profile &profile;
    Reactor &reactor;
    Sessions &sessions;
    Recorder &recorder;
    ClientAnswers &answers;
    ClientRequests &requests;
    Views &views;
    Subscriptions &subscriptions;
    CallEnds &ends;
  };
  explicit Listens(Needs needs) : needs_(needs) {}
  ~Listens();
  Listens(const Listens &) = delete;
  Listens &operator=(const Listens &) = delete;

  // Opens a listen request. If that fails, sends an error response. The request must have a session
  // of its own, and that session must have a view.
  void begin(Session &session, Incoming &request);
  bool has(const Session &session) const { return open_.contains(session.handle); }
  // Closes the stream of the session's listen request without a response. Called when the client
  // has cancelled the request.
  void cancel(const Session &session);
  // Sends the response to the session's listen request, if there is one. Called when the gateway
  // shuts down.
  void finish(const Session &session);
  // Called before the session ends.
  void ended(const Session &session);

 private:
  struct Listen {
    Listens *owner = nullptr;
    ReplyTo reply;
    ParkedMessage message;
    std::uint64_t start_ns = 0, scope = 0;
    std::vector<ItemKind> kinds;         // the lists whose changes are reported
    std::vector<std::string> resources;  // URI tokens, exactly as the client wrote them
    std::size_t next = 0;                // index of the first resource that was not requested yet
    std::size_t requests = 0;            // subscribe requests without a response
    std::shared_ptr<ClientLoad> load;    // of the client
    std::uint64_t timer = 0;
    bool acknowledged = false;
    bool asks_for_resources = false;
  };
  // Parses the filter of a listen request into *out. Returns false if the filter is invalid.
  bool read_filter(std::string_view filter, const Session &session, Listen *out) const;
  void subscribe(bh_session session);
  void settled(bh_session session);
  void proceed_later();
  void proceed();
  void end_requests(Session &session, Listen &listen);
  void acknowledge(Listen &listen);
  std::vector<std::string> accepted(const Session &session, const Listen &listen) const;
  void close(std::map<bh_session, Listen>::iterator at);
  void record(const Listen &listen, std::uint32_t outcome, std::string_view error,
              std::string_view response) const;

  const Needs needs_;
  std::map<bh_session, Listen> open_;  // keyed by the session of the request
  bool proceeding_ = false;            // proceed() was deferred
};

}  // namespace bulkhead
