// Converts responses between protocol generations, and replaces the servers' task ids with those
// that clients use. If the server and the client both use revision 2026-07-28, checks requests for
// input and seals the server's state. take() is called before the policy evaluates a response, and
// convert() afterwards.
//
// Owner: the Router. Runs on the reactor thread. take() and convert() must be called inside a step;
// see CallLoop.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/scan.hpp"
#include "reactor/reactor.hpp"
#include "route/call.hpp"
#include "route/call_ends.hpp"
#include "route/gate.hpp"
#include "route/input_rounds.hpp"
#include "route/message.hpp"
#include "route/request_states.hpp"
#include "route/splice.hpp"
#include "route/task_answers.hpp"
#include "route/task_rounds.hpp"

namespace bulkhead {

class AnswerBridge {
 public:
  struct Needs {
    Reactor &reactor;
    const Gate &gate;
    CallEnds &ends;
    InputRounds &rounds;
    // Seals requestState values before they are sent to clients. Null if no client uses revision
    // 2026-07-28.
    const RequestStates *states = nullptr;
    std::uint64_t state_ms = 0;          // how long such a state is valid
    const TaskAnswers *tasks = nullptr;  // null: task ids are not replaced
    TaskRounds *task_rounds = nullptr;   // null: there are no calls with a TaskBridge
  };
  explicit AnswerBridge(Needs needs) : needs_(needs) {}

  // Called when the response arrives, while the call is still at its lane.
  void arrived(Call &call, const Message &answer) const;

  // A response that has been composed here, with its scan.
  struct Composed {
    std::string text;
    mcp::Scan scan{};
  };
  // Returns the response for the policy and the client: the server's, or one composed in *room.
  // Returns nullopt if the call needs further requests or input, or has been ended.
  std::optional<Message> take(Call &call, const Message &answer, Composed *room) const;

  // Returns the result to send if the policy has replaced `result` with `replacement`. Returns
  // nullopt if `result` describes a task and cannot be rewritten: the task has an error, or the
  // replacement does not contain the task's members.
  static std::optional<std::string> rewritten(const Call &call, std::string_view result,
                                              const std::string &replacement);

  // A response as the client receives it. Borrows the message that is passed to the constructor.
  // Must not be moved.
  struct Reply {
    explicit Reply(const Message &answer);
    Reply(const Reply &) = delete;
    Reply &operator=(const Reply &) = delete;

    Splice splice;
    bool ok;                        // is a result
    std::uint64_t bytes;            // for the record
    std::string_view response;      // for the record: the result or the error
    std::uint32_t http_status = 0;  // 0: the transport's default

   private:
    friend class AnswerBridge;
    // Texts that the splice borrows.
    std::string whole_, meta_, state_, code_;
    TaskAnswers::Edits tasks_;
  };
  // Returns false if responses of this call need no conversion, except for their id.
  static bool converts(const Call &call);
  // Converts the response. Returns false if the call has been ended instead.
  bool convert(Call &call, const Message &answer, Reply *reply) const;

 private:
  bool convert_result(Call &call, const Message &answer, Reply *reply) const;
  bool convert_error(Call &call, const Message &answer, Reply *reply) const;
  bool edit_tasks(Call &call, const Message &answer, Reply *reply) const;
  bool ask_for_urls(Call &call, std::string_view error, Reply *reply) const;
  bool forward_input(Call &call, const Message &answer, Reply *reply) const;
  bool fail(Call &call, std::string_view why) const;
  std::optional<std::string> sealed(const Call &call, std::string_view state) const;

  const Needs needs_;
};

}  // namespace bulkhead
