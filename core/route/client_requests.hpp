// Handles the client requests that are the same in all protocol generations: list requests, and
// calls to servers.
//
// Runs on the reactor thread. Owned by the Router.
#pragma once

#include "profile/profile.hpp"
#include "route/client_answers.hpp"
#include "route/list_requests.hpp"
#include "route/subscriptions.hpp"
#include "route/targets.hpp"
#include "route/task_requests.hpp"

namespace bulkhead {

class Calls;

class ClientRequests {
 public:
  struct Needs {
    const Expose &expose;
    ListRequests &lists;
    Targets &targets;
    TaskRequests &tasks;
    const Subscriptions &subscriptions;
    Calls &calls;
    ClientAnswers &answers;
  };
  explicit ClientRequests(Needs needs) : needs_(needs) {}

  // Responds to the request immediately or later. The session must have a view. If the method
  // neither lists items nor calls a server, the response is the error "Method not found".
  void answer(Session &session, Incoming &request);
  // Returns true if the profile offers the method. Otherwise, sends an error response and returns
  // false.
  bool offers(Incoming &request);
  // Sends the error "Method not found".
  void not_found(Incoming &request);

 private:
  void call(Session &session, Incoming &request);

  const Needs needs_;
};

}  // namespace bulkhead
