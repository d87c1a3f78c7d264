// Converts the responses to requests about tasks if the client and the server are of different
// protocol generations, and sends the further requests that this needs:
//
//  client      its request     at the server
//  2025-11-25  tasks/result    tasks/get until the task has ended. The client is asked for the
//                              task's input (InputRounds), which is sent with tasks/update
//  2025-11-25  tasks/cancel    tasks/cancel, then tasks/get
//  2026-07-28  tasks/get       tasks/get, then tasks/result if the task has completed or failed
//
// All of these requests belong to one call, which is recorded once. tasks/result waits for the task
// for at most limits.call_timeout_ms. This time starts again after the client has given input.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/call.hpp"
#include "route/call_ends.hpp"
#include "route/input_rounds.hpp"
#include "route/message.hpp"

namespace bulkhead {

class TaskRounds {
 public:
  // Minimum, maximum and default of the pause between two requests for the state of a task. The
  // server's pollIntervalMs, if present, replaces the default, but is limited to this range.
  static constexpr std::uint64_t min_pause_ms = 100, max_pause_ms = 10'000, pause_ms = 1'000;

  struct Needs {
    const Limits &limits;
    Reactor &reactor;
    InputRounds &rounds;
    CallEnds &ends;
  };
  explicit TaskRounds(Needs needs) : needs_(needs) {}

  enum class Step : std::uint8_t {
    unchanged,  // the client receives the response unchanged
    replaced,   // the client receives the response in *room
    waits       // the call continues, or has ended
  };
  // Handles a response from the server. Requires call.bridge. Must be called inside a step.
  Step take(Call &call, const Message &answer, std::string *room);

 private:
  Step created(Call &call, std::string_view result, std::string *room);
  Step described(Call &call, const Message &answer, std::string *room);
  Step cancelled(Call &call, std::string_view result, std::string *room);
  Step awaited(Call &call, const Message &answer, std::string *room);
  Step send_next(Call &call, mcp::Method method, std::uint64_t pause);
  Step ask(Call &call, const Message &answer);

  const Needs needs_;
};

}  // namespace bulkhead
