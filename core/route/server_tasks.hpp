// Determines how calls concern tasks of the lane's server, and cancels tasks that no client has
// received.
//
// Owned by the lane. Used on the reactor thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "route/conversation.hpp"
#include "route/lane.hpp"
#include "route/lane_wire.hpp"

namespace bulkhead {

class ServerTasks {
 public:
  // Limit for open tasks/cancel requests that the lane sends on its own behalf. Without this limit,
  // a server could cause any number of them.
  static constexpr std::size_t max_cancels = 16;

  ServerTasks(Lane &lane, LaneHost &host, Conversation &conversation, LaneWire &wire)
      : lane_(lane), host_(host), conversation_(conversation), wire_(wire) {}

  TaskRole role(const Call &call, const CallInHand &hand) const;
  // Prepares the conversion of a call that concerns a task, if the client and the server are of
  // different generations. Returns false if no conversion is necessary.
  static bool bridge(Call &call, bool same_generation);
  // Returns the request with only the members that reduced_request() keeps.
  static CallInHand reduced(const CallInHand &hand);
  // Tries to cancel a task that no client has received: sends tasks/cancel, unless there is no
  // connection, the server does not support this method, or max_cancels of these requests are open.
  // The response is discarded, and these requests do not count towards the server's max_in_flight.
  // `id` is the server's, as a JSON string.
  void cancel(std::string_view id);
  // Called with a result that does not belong to an open exchange. Usually, its call has ended, but
  // the server may send any id. If the result describes a task that no client has received, cancels
  // the task.
  void cancel_stray(std::string_view result);
  // Returns how many tasks/cancel requests of the lane itself are open.
  std::size_t open_cancels();

 private:
  // Returns true if the server uses 2025-11-25 and declares that it can run tool calls as tasks.
  bool runs_session_tasks() const;
  bool tool_supports_tasks(const Resolved &tool) const;

  Lane &lane_;
  LaneHost &host_;
  Conversation &conversation_;
  LaneWire &wire_;
  std::vector<std::uint64_t> cancels_;  // exchanges of tasks/cancel requests; some may have ended
};

}  // namespace bulkhead
