// Resolves the task id in a client's request about a task to the lane of the task's server and the
// server's id. The counterpart for names is Targets.
//
// Runs on the reactor thread. Owned by the Router.
#pragma once

#include <string_view>

#include "reactor/reactor.hpp"
#include "route/client_answers.hpp"
#include "route/target.hpp"
#include "route/task_ids.hpp"

namespace bulkhead {

class TaskRequests {
 public:
  struct Needs {
    const TaskIds &ids;
    Reactor &reactor;
    ClientAnswers &answers;
  };
  explicit TaskRequests(Needs needs) : needs_(needs) {}

  // Finds the target of the request. The session must have a view. Returns false if an error
  // response was sent instead. The response is the same for all ids that are not valid, so that it
  // does not show whether another client has such a task. The lane may be one that the session's
  // view does not contain, because the client has declared other capabilities since.
  bool find(Session &session, Incoming &request, Target *out);

 private:
  bool refuse(Incoming &request, std::string_view text);

  const Needs needs_;
};

}  // namespace bulkhead
