// Replaces the servers' task ids in results with the ids that clients use (TaskIds).
//
// Used on the reactor thread. Owned by the Router.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/splice.hpp"
#include "route/task_forms.hpp"
#include "route/task_ids.hpp"

namespace bulkhead {

struct Call;

class TaskAnswers {
 public:
  struct Needs {
    const TaskIds &ids;
    Reactor &reactor;
    const Limits &limits;  // task_lifetime_ms: how long an id is valid
  };
  explicit TaskAnswers(Needs needs) : needs_(needs) {}

  // The edits that a result needs. The places point into the result.
  struct Edits {
    TaskIdPlaces places;
    std::string id;  // the client's
    void apply(Splice *splice, std::string_view message) const;
    std::string applied(std::string_view text) const;
  };
  // Called when the server's result has arrived. If it describes a new task, seals the client's id
  // of the task (ClientRequest::task_id), notes whose task it is, and sets Call::created.
  void arrived(Call &call, std::string_view result) const;
  // Returns the edits for a result of this call. Fails if the result describes a task without a
  // valid id, a task that policies cannot evaluate completely (two outcomes, a reserved member), or
  // a new task of a call that has no session. The error is phrased to follow 'server "x" '.
  std::expected<Edits, std::string> edits(const Call &call, std::string_view result) const;

 private:
  std::optional<std::string> seal(const Call &call, std::string_view id) const;

  const Needs needs_;
};

// Notes that the task with this id (the server's, as a JSON string) belongs to the call's client,
// which knows the task as ClientRequest::task_id. Does nothing if the call is not at a lane or has
// no session.
void note_task(const Call &call, std::string_view id);

}  // namespace bulkhead
