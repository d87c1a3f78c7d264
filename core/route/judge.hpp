// Composes policy requests for calls and their results, and passes them to the policy gate.
// Stateless.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>

#include "bulkhead/abi/ext/policy.h"
#include "reactor/reactor.hpp"
#include "route/call.hpp"
#include "route/gate.hpp"
#include "route/message.hpp"
#include "route/pin_watch.hpp"
#include "route/recorder.hpp"
#include "route/target.hpp"

namespace bulkhead {

// Converts a server's error to a result, because policies can only read results. The error's
// message becomes text content, its data becomes structured content, and an integer code is
// omitted. If the error has any other parts, the result also contains the complete error. `error`
// must be an object.
std::string error_as_result(std::string_view error);

// Returns true if the method's params have `arguments`. In other requests, a member of this name is
// unknown: rules find it in mcp.request.extra, and cannot rewrite it.
constexpr bool has_arguments(mcp::Method method) noexcept {
  return method == mcp::Method::tools_call || method == mcp::Method::prompts_get;
}

class Judge {
 public:
  Judge(const Gate &gate, const PinWatch &pins, const Recorder &recorder, Reactor &reactor)
      : gate_(gate), pins_(pins), recorder_(recorder), reactor_(reactor) {}

  // Returns the part of a request that is checked for duplicate members before the policy reads it:
  // all params if the policy also reads other members than `arguments`, otherwise only `arguments`.
  static mcp::Range judged_part(const mcp::Scan &scan) noexcept;
  // Returns the result or error object of a response.
  static std::string_view judged_part_of_answer(const Message &answer);
  // Returns true if the policy reads arguments and the evaluated part is so large that it must be
  // checked for duplicate members on the thread pool.
  bool checks_later(const mcp::Scan &scan) const noexcept;

  // Evaluates a call. `flags` contains BH_REQUEST_... bits. If the policy reads arguments and the
  // evaluated part has duplicate members, refuses the call without asking the policy, because the
  // server may interpret duplicates differently.
  Gate::Decision decide(const Call &call, const Message &message, const Target &target,
                        std::uint32_t flags) const;
  // Like decide(), but for a call that has already been checked for duplicate members.
  Gate::Decision decide_checked(const Call &call, const Message &message, const Target &target,
                                std::uint32_t flags) const;
  // Evaluates a response, which must not contain duplicate members. An error response is converted
  // to a result for the policy.
  Gate::Decision observe(const Call &call, const Message &answer) const;
  // Looks up the current definition of the target of a call that has waited, and stores it in
  // `target`. Returns true if the definition has changed. All zeros in `definition_hash` then mean
  // that the item is no longer listed. Does nothing if `target` has no definition.
  static bool renew_definition(const Call &call, Target *target);
  // Returns true if the target's definition is approved, the target is not a tool, or the profile
  // does not enforce pins.
  bool is_approved(const Call &call, const Target &target) const;
  // The refusal of a call for which is_approved() returns false.
  Gate::Decision not_approved(const Call &call, const Target &target) const;

  static Gate::Decision duplicates_in(std::string_view where);

  // Stores the decision for the call's record, unless it is pending. A call that required approval
  // keeps the action "ask" if a later decision allows it without changes.
  void note(Call &call, const Gate::Decision &decision) const;

 private:
  bh_policy_request request_of(const Call &call) const;

  const Gate &gate_;
  const PinWatch &pins_;
  const Recorder &recorder_;
  Reactor &reactor_;
};

}  // namespace bulkhead
