// Combines several policies into one. The policies are asked in profile order. The first refusal is
// final: later policies are not asked and cannot override it. Each policy receives only the data
// that it reads, as rewritten by earlier policies. If some policies require approval and none
// refuses, the approval request names the rules of all of them. Once the call is approved, only the
// policies that required approval receive BH_REQUEST_APPROVED.
//
// A single policy is asked directly. Policies in this process are monitored for hangs.
//
// Owner: the Host. Must be used on the reactor thread.
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
    // The policy's name, for hang detection. Null if the policy runs in another process.
    const std::string *name = nullptr;
    std::uint32_t needs = 0;  // set by use()
  };

  // Sets the policies. If there are several, a request is stored while one of them is deciding;
  // `kept_bytes` limits the total size of stored requests. May be called again with the same
  // engines if their needs change.
  void use(std::vector<Engine> engines, std::uint64_t kept_bytes);
  // Must be called when the rules have changed. If there are several policies, requests that are
  // being evaluated are evaluated again by all of them when their next verdict arrives, unless it
  // refuses the request. Policies that have allowed it before receive BH_REQUEST_AGAIN. Requests
  // are refused if the policies now need data that was not kept.
  void rules_changed() noexcept;
  // Sets the watch that monitors the policies. If `watch` is null, they are not monitored. `watch`
  // must outlive the stack or the next call of this function.
  void watch_with(PolicyWatch *watch) noexcept { watch_ = watch; }

  // Sets the function that validates large rewritten arguments and results. The result of each
  // validation must be passed to answered().
  void read_with(Gate::ReadLater later) { read_later_ = std::move(later); }

  std::size_t size() const noexcept { return engines_.size(); }

  // Returns the function table of the combined policy. Its `self` is a PolicyStack.
  static const bh_policy &table() noexcept;

  // Receives the delayed verdict of one policy and asks the remaining policies. `who` is the `self`
  // pointer of the policy, or null for the policy that was asked last. Returns a pending decision
  // if another policy delays its verdict, or if no such request is waiting.
  Decision answered(std::uint64_t exchange, Decision decision, const void *who = nullptr);
  // Sets *why if a policy has failed.
  Shown filtered(std::uint64_t question, bool listed, const void *who, std::string *why);
  // Must be called when the verdict is no longer needed or the call has finished.
  void forget(std::uint64_t number);

 private:
  friend struct PolicyStackFunctions;

  // Bit n stands for engines_[n]. A profile cannot have more policies than there are bits.
  using EngineBits = std::uint32_t;
  enum class Look : std::uint8_t { decide, observe, filter };
  // How far the evaluation of one request has progressed.
  struct Progress {
    Look look = Look::decide;
    bool call = true;             // false for an event other than a call
    std::size_t next = 0;         // index of the engine to ask next
    const void *asked = nullptr;  // `self` of the engine that was asked last
    EngineBits askers = 0;        // engines that require approval
    EngineBits approved = 0;      // engines whose required approval has been given
    EngineBits reached = 0;       // engines that were asked in this evaluation
    // Engines that have counted the request: those that allowed it before the rules changed.
    EngineBits counted = 0;
    Decision so_far;
    bool rewritten = false;  // so_far.replacement replaces the text
    bool stale = false;      // the rules have changed since the evaluation began
  };
  // A request that is waiting for a delayed verdict, with the data that the remaining engines need.
  struct Kept {
    Progress progress;
    bh_policy_request request{};
    std::string bytes;  // the data to which `request` points, followed by the text
    std::size_t text_at = 0;
    std::uint32_t needs = 0;  // needs_ when the request arrived
    std::uint64_t cost = 0;
  };

  static std::uint32_t wanted_bit(Look look, std::uint32_t event) noexcept;
  Decision begin(const bh_policy_request &request, Look look, std::string_view text);
  Decision run(const bh_policy_request &request, std::string_view text, Progress progress);
  Decision ask(const Engine &engine, Look look, bh_policy_request request,
               std::string_view text) const;
  Decision read(std::uint64_t exchange, Decision rewrite, const void *who) const;
  static bool merge(Progress *progress, Decision decision);
  static Progress from_the_beginning(const Progress &before) noexcept;
  Decision conclude(std::uint64_t exchange, Progress progress);
  Decision keep(const bh_policy_request &request, std::string_view text, Progress progress);
  bool has_room(const bh_policy_request &request, std::string_view text) const noexcept;
  bh_status fill_verdict(Decision decision, bh_verdict *out, bh_error *error);

  PolicyWatch *watch_ = nullptr;
  Gate::ReadLater read_later_;
  std::vector<Engine> engines_;
  std::uint32_t needs_ = 0;                       // combined needs of all engines
  std::unordered_map<std::uint64_t, Kept> kept_;  // empty if there is only one engine
  // For each call that requires approval, the engines that required it. Entries are kept until
  // forget(). Empty if there is only one engine.
  std::unordered_map<std::uint64_t, EngineBits> askers_;
  std::uint64_t kept_bytes_ = 0, max_kept_bytes_ = 0;
  // Owns the strings of the last result, which are valid until the next request.
  Decision last_decision_;
};

}  // namespace bulkhead
