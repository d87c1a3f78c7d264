// Composes the policy requests for calls and their results. Stateless; the policy decides.
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

class Judge {
 public:
  Judge(const Gate &gate, const PinWatch &pins, const Recorder &recorder, Reactor &reactor)
      : gate_(gate), pins_(pins), recorder_(recorder), reactor_(reactor) {}

  // Returns the range in params that the policy reads.
  static mcp::Range judged_part(const mcp::Scan &scan) noexcept;
  // Returns the answer's result or error.
  static std::string_view judged_part_of_answer(const Message &answer);
  // Returns true if the evaluated part is too large to be checked for duplicate members on the
  // reactor thread.
  bool checks_later(const mcp::Scan &scan) const noexcept;

  // Asks the policy about a call. `flags` contains BH_REQUEST_... bits. A call with duplicate
  // members is refused without asking the policy, because two parsers may interpret it differently.
  Gate::Decision decide(const Call &call, const Message &message, const Target &target,
                        std::uint32_t flags) const;
  // Like decide(), for a call that the pool has already checked for duplicate members.
  Gate::Decision decide_checked(const Call &call, const Message &message, const Target &target,
                                std::uint32_t flags) const;
  // Asks the policy about a result that has no duplicate members. Policies receive an error as an
  // equivalent result.
  Gate::Decision observe(const Call &call, const Message &answer) const;
  // Returns true if the tool's definition is approved or the profile does not enforce pins.
  bool is_approved(const Call &call, const Target &target) const;
  static Gate::Decision not_approved();

  static Gate::Decision duplicates_in(std::string_view where);

  // Stores the decision in the call's account, for its record. A call that required approval keeps
  // that action unless the rules refuse it later.
  void note(Call &call, const Gate::Decision &decision) const;

 private:
  bh_policy_request request_of(const Call &call) const;

  const Gate &gate_;
  const PinWatch &pins_;
  const Recorder &recorder_;
  Reactor &reactor_;
};

}  // namespace bulkhead
