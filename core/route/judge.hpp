// What a policy is asked about calls and their results. Decides nothing itself, and keeps nothing.
// Owner: the Router. Thread: [io].
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

class Judge {
 public:
  Judge(const Gate &gate, const PinWatch &pins, const Recorder &recorder, Reactor &reactor)
      : gate_(gate), pins_(pins), recorder_(recorder), reactor_(reactor) {}

  // The part of params that is judged, in one piece.
  static mcp::Range judged_part(const mcp::Scan &scan) noexcept;
  // result or error.
  static std::string_view judged_part_of_answer(const Message &answer);
  // It is too large to be looked at for duplicate members before somebody else's turn.
  bool checks_later(const mcp::Scan &scan) const noexcept;

  // `flags`: BH_REQUEST_... . With duplicate members, which two readers may read differently, it is
  // refused without a question.
  Gate::Decision decide(const Call &call, const Message &message, const Target &target,
                        std::uint32_t flags) const;
  // The same of what the pool has found no duplicate members in.
  Gate::Decision decide_checked(const Call &call, const Message &message, const Target &target,
                                std::uint32_t flags) const;
  // Of a result, or an error, which policies see as a result. Likewise without duplicate members.
  Gate::Decision observe(const Call &call, const Message &answer) const;
  // The tool's definition is the one that was approved, or the profile does not ask for that.
  bool is_approved(const Call &call, const Target &target) const;
  static Gate::Decision not_approved();

  static Gate::Decision duplicates_in(std::string_view where);

  // For the record: what the policy said of the call, and whatever it changed of the result. Of a
  // call that needed approval the record says that, unless the rules refuse it by then.
  void note(Call &call, const Gate::Decision &decision) const;

 private:
  bh_policy_request request_of(const Call &call) const;

  const Gate &gate_;
  const PinWatch &pins_;
  const Recorder &recorder_;
  Reactor &reactor_;
};

}  // namespace bulkhead
