// The tasks that a lane's server has created, each with its client. A request of the server about a
// task (related-task in its _meta) is sent only to the task's client.
//
// A note is made when the server has created the task, and renewed by each request about the task.
// Therefore, a task whose note was removed is known again as soon as its client sends a request
// about the task.
//
// Owner: the Lane. Runs on the reactor thread. Limit: max_notes; beyond it, the session with the
// most notes (including the new one) loses the note that was renewed least recently. All clients
// without a session count as one. The lengths of a note's strings are limited by TaskIds.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "bulkhead/abi/ext/transport.h"

namespace bulkhead {

struct TaskNote {
  std::string id;          // the server's, unescaped
  std::string client_id;   // JSON string: the id that the client has
  std::string tool;        // the server's name for the tool whose call created the task
  bh_session session = 0;  // of the client; 0 if its requests have no session
};

class TaskNotes {
 public:
  static constexpr std::size_t max_notes = 1'024;

  // Adds or renews the note of a task.
  void keep(TaskNote note);
  // Returns null if there is no note of this task. The pointer is valid until the next change.
  const TaskNote *find(std::string_view id) const;
  // Removes the note of this task, if there is one.
  void forget(std::string_view id);
  void clear();
  std::size_t size() const noexcept { return notes_.size(); }

 private:
  using Notes = std::list<TaskNote>;  // least recently renewed first

  using ById = std::map<std::string, Notes::iterator, std::less<>>;

  void make_room();
  void count_down(bh_session session);
  void remove(ById::iterator at);

  Notes notes_;
  ById by_id_;
  std::map<bh_session, std::size_t> counts_;  // number of notes of each session; never 0
};

}  // namespace bulkhead
