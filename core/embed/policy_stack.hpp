// Combines several policies into one. They are asked in profile order, and the first refusal is
// final: later policies are not asked and cannot override it. Each policy receives only the data
// that it reads, as rewritten by earlier policies. If policies require approval and none refuses,
// the approval names the rules of all of them. Once the call is approved, only the policies that
// required the approval receive BH_REQUEST_APPROVED.
//
// A single policy is asked directly. Policies in this process are monitored for hangs.
//
// Owner: the Host. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bulkhead/abi/ext/policy.h"
#include "embed/policy_watch.hpp"
#include "route/gate.hpp"

namespace bulkhead {

class PolicyStack {
 public:
  using Decision = Gate::Decision;
  using Verdict = Gate::Verdict;
  using Shown = Gate::Shown;

  struct Engine {
    const bh_policy *table = nullptr;
    void *self = nullptr;
    const std::string *name = nullptr;  // set for a policy in this process, for hang detection
    std::uint32_t needs = 0;            // set by use()
  };

  // `kept_bytes` limits the size of stored requests. Requests are stored while one of several
  // policies is deciding. May be called again with the same engines if their needs change.
  void use(std::vector<Engine> engines, std::uint64_t kept_bytes);
  // Called when the rules have changed. When an answer arrives for a request that began under the
  // previous rules, calls and results are refused, and list items are evaluated again.
  void rules_changed() noexcept;
  // `watch` must outlive the stack. If `watch` is null, policies are not monitored for hangs.
  void watch_with(PolicyWatch *watch) noexcept { watch_ = watch; }

  // Sets the function that validates large rewritten texts. Its result is passed to answered().
  void read_with(Gate::ReadLater later) { read_later_ = std::move(later); }

  std::size_t size() const noexcept { return engines_.size(); }

  // Returns the table for the gate. The table's `self` is this PolicyStack.
  static const bh_policy &table() noexcept;

  // Receives one policy's answer to a pending request and asks the remaining policies. `who` is the
  // policy's `self` pointer, or null for the policy that was asked last. Returns pending if another
  // policy will answer later or if the request is not pending.
  Decision answered(std::uint64_t exchange, Decision decision, const void *who = nullptr);
  Shown filtered(std::uint64_t question, bool listed, const void *who = nullptr);
  // Called when the answer is no longer needed or the call has ended.
  void forget(std::uint64_t number);

 private:
  friend struct PolicyStackFunctions;

  using EngineBits = std::uint32_t;  // bit n: engines_[n]; has room for all policies of a profile
  enum class Look : std::uint8_t { decide, observe, filter };
  // The progress of one request through the policies.
  struct Progress {
    Look look = Look::decide;
    bool call = true;             // false: an event other than a call
    std::size_t next = 0;         // the engine to ask next
    const void *asked = nullptr;  // self of the engine that was asked last
    EngineBits askers = 0;        // engines that require approval
    EngineBits approved = 0;      // engines whose required approval was given
    Decision so_far;
    bool rewritten = false;  // so_far.replacement replaces the text
    bool stale = false;      // the rules have changed since the request started
  };
  // A pending request, with the data that the remaining engines need.
  struct Kept {
    Progress progress;
    bh_policy_request request{};
    std::string bytes;  // the request's data, followed by the text
    std::size_t text_at = 0;
    std::uint64_t cost = 0;
  };

  static std::uint32_t wanted_bit(Look look, std::uint32_t event) noexcept;
  Decision begin(const bh_policy_request &request, Look look, std::string_view text);
  Decision run(const bh_policy_request &request, std::string_view text, Progress progress);
  Decision ask(const Engine &engine, Look look, bh_policy_request request,
               std::string_view text) const;
  Decision read(std::uint64_t exchange, Decision rewrite, const void *who) const;
  static bool merge(Progress *progress, Decision decision);
  Decision conclude(std::uint64_t exchange, Progress progress);
  Decision keep(const bh_policy_request &request, std::string_view text, Progress progress);
  bool has_room(const bh_policy_request &request, std::string_view text) const noexcept;
  bh_status fill_verdict(Decision decision, bh_verdict *out, bh_error *error);

  PolicyWatch *watch_ = nullptr;
  Gate::ReadLater read_later_;
  std::vector<Engine> engines_;
  std::uint32_t needs_ = 0;                       // combined needs of all engines
  std::unordered_map<std::uint64_t, Kept> kept_;  // empty if there is only one engine
  // Calls that require approval, with the engines that required it. Entries are kept until
  // forget(). Empty if there is only one engine.
  std::unordered_map<std::uint64_t, EngineBits> askers_;
  std::uint64_t kept_bytes_ = 0, max_kept_bytes_ = 0;
  Decision last_decision_;  // its texts stay valid until the next request
};

}  // namespace bulkhead
