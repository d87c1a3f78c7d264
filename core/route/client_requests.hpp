// The client requests that have the same meaning in all protocol generations: lists, and calls to
// servers.
//
// Runs on the I/O thread. Owned by the Router.
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

  // Answers a request of a session that has a view, now or later. A request that is neither a list
  // nor a call is answered with "Method not found".
  void answer(Session &session, Incoming &request);
  // Returns false if the profile does not offer the method; the request is then already answered.
  bool offers(Incoming &request);

 private:
  void call(Session &session, Incoming &request);
  void not_found(Incoming &request);

  const Needs needs_;
};

}  // namespace bulkhead
