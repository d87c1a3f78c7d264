// Several policies as one: they are asked one after the other, in the order of the profile. The
// first that refuses ends it: nothing that another one says lifts a refusal, and those behind it
// are not asked. Each gets only what it says that it reads, with what those before it have
// rewritten. When some ask for a person and none refuses, the person is told the rules of all of
// them. When a person has said yes, only those that asked are told so.
//
// One policy alone is asked as if this were not here. Those of this process are watched.
//
// Owner: the Host. Thread: [io].
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
    const std::string *name = nullptr;  // of one in this process: it is watched
    std::uint32_t needs = 0;            // filled by use()
  };

  // kept_bytes: the most that questions hold which one of several answers later. Again with the
  // same engines: what they need may be other now.
  void use(std::vector<Engine> engines, std::uint64_t kept_bytes);
  // Other rules are in force: what waits was begun under those before. When its answer comes, a
  // call or a result is refused, and an item is asked about anew.
  void rules_changed() noexcept;
  // Null: nobody watches. Outlives the stack.
  void watch_with(PolicyWatch *watch) noexcept { watch_ = watch; }

  // Who looks at large replacements; its answer comes through answered().
  void read_with(Gate::ReadLater later) { read_later_ = std::move(later); }

  std::size_t size() const noexcept { return engines_.size(); }

  // What the gate asks; its `self` is the PolicyStack.
  static const bh_policy &table() noexcept;

  // One policy has answered what was pending; those behind it are asked. `who`: its self, or null
  // if it is known that this one was asked. pending: another one answers later, or nobody waits for
  // this.
  Decision answered(std::uint64_t exchange, Decision decision, const void *who = nullptr);
  Shown filtered(std::uint64_t question, bool listed, const void *who = nullptr);
  // Nobody waits for the answer any more, or the call has ended.
  void forget(std::uint64_t number);

 private:
  friend struct PolicyStackFunctions;

  using EngineBits = std::uint32_t;  // by place in engines_, as many as a profile may have
  enum class Look : std::uint8_t { decide, observe, filter };
  // How far the policies are with one question.
  struct Progress {
    Look look = Look::decide;
    bool call = true;             // false: an event that is no call
    std::size_t next = 0;         // the engine after the one that was asked last
    const void *asked = nullptr;  // that one's self
    EngineBits askers = 0;        // those that want a person to allow it
    EngineBits approved = 0;      // a person has allowed it, which these wanted
    Decision so_far;
    bool rewritten = false;  // so_far.replacement takes the place of the text
    bool stale = false;      // other rules have come since
  };
  // One that waits, with what the engines after it will need.
  struct Kept {
    Progress progress;
    bh_policy_request request{};
    std::string bytes;  // what the request points to, and then the text
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
  bh_status say(Decision decision, bh_verdict *out, bh_error *error);

  PolicyWatch *watch_ = nullptr;
  Gate::ReadLater read_later_;
  std::vector<Engine> engines_;
  std::uint32_t needs_ = 0;                       // of all of them
  std::unordered_map<std::uint64_t, Kept> kept_;  // empty with one engine
  // Of calls that a person is asked about, until forget(): who wanted that. Empty with one engine.
  std::unordered_map<std::uint64_t, EngineBits> askers_;
  std::uint64_t kept_bytes_ = 0, max_kept_bytes_ = 0;
  Decision said_;  // its texts are borrowed until the next question
};

}  // namespace bulkhead
