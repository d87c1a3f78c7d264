// The open subscriptions/listen requests of MCP 2026-07-28. Such a request is answered when it
// ends. Until then, its stream carries the notifications that it has asked for, after an
// acknowledgement that lists those that the gateway sends.
//
// Changes of lists come from the view of the request's session. For each resource, the listen
// subscribes like a client with a session, so that the policy evaluates each of them. The
// acknowledgement waits for these subscriptions, at most resource_wait_ms, and omits the others.
//
// A listen is no call: it has no time-out and does not count for limits.in_flight_per_session.
//
// Runs on the I/O thread. Owned by the Router. Limits: limits.listens_per_client for each
// connection, or over HTTP for each principal; limits.subscriptions_per_session resources each.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
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
  };
  explicit Listens(Needs needs) : needs_(needs) {}
  ~Listens();
  Listens(const Listens &) = delete;
  Listens &operator=(const Listens &) = delete;

  // Starts to listen, for a request in a session of its own that has a view, or answers the request
  // with an error.
  void begin(Session &session, Incoming &request);
  bool has(const Session &session) const { return open_.contains(session.handle); }
  // The client has cancelled the request: releases its stream without an answer.
  void cancel(const Session &session);
  // The gateway is stopping: answers the request. Does nothing for other sessions.
  void finish(const Session &session);
  // The session is about to end.
  void ended(const Session &session);

 private:
  struct Listen {
    Listens *owner = nullptr;
    ReplyTo reply;
    ParkedMessage message;
    std::uint64_t start_ns = 0, scope = 0;
    std::vector<ItemKind> kinds;         // whose changes are reported
    std::vector<std::string> resources;  // URI tokens, as the client spelled them
    std::size_t unsettled = 0;           // subscriptions that no server has answered
    std::uint64_t timer = 0;
    bool acknowledged = false;
    bool asks_for_resources = false;
  };
  // Returns false if the filter is invalid.
  bool read_filter(std::string_view filter, const Session &session, Listen *out) const;
  void subscribe(bh_session session);
  void settled(bh_session session);
  void acknowledge_settled();
  void acknowledge(Listen &listen);
  std::vector<std::string> accepted(const Session &session, const Listen &listen) const;
  void record(const Listen &listen, std::uint32_t outcome, std::string_view error,
              std::string_view response) const;

  const Needs needs_;
  std::map<bh_session, Listen> open_;  // by the session of the request
};

}  // namespace bulkhead
