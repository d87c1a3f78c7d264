// The requests of clients that have the same meaning in all generations of the protocol: lists, and
// calls of a server. Owner: the Router. Thread: [io].
#pragma once

#include "profile/profile.hpp"
#include "route/client_answers.hpp"
#include "route/list_requests.hpp"
#include "route/subscriptions.hpp"
#include "route/targets.hpp"

namespace bulkhead {

class Calls;

class ClientRequests {
 public:
  struct Needs {
    const Expose &expose;
    ListRequests &lists;
    Targets &targets;
    const Subscriptions &subscriptions;
    Calls &calls;
    ClientAnswers &answers;
  };
  explicit ClientRequests(Needs needs) : needs_(needs) {}

  // Answers a request of a session that has a view, now or later; one that is neither a list nor a
  // call with "Method not found".
  void answer(Session &session, Incoming &request);
  // False: the profile does not offer the method, and the request is answered.
  bool offers(Incoming &request);

 private:
  void call(Session &session, Incoming &request);
  void not_found(Incoming &request);

  const Needs needs_;
};

}  // namespace bulkhead
