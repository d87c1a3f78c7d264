// Manages lists that are filtered by a policy or by pins. For each principal of a view, the policy
// decides on every item once, until the items or the rules change or a decision times out. Client
// requests for a list that is not fully decided are parked in View::waiters.
//
// Owner: the Router. Runs on the reactor thread. Limit: limits.policy_timeout_ms for each list.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>

#include "base/log_limit.hpp"
#include "catalog/catalogue.hpp"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/counters.hpp"
#include "route/gate.hpp"
#include "route/pin_watch.hpp"
#include "route/session.hpp"
#include "route/view.hpp"

namespace bulkhead {

class FilteredLists {
 public:
  struct Needs {
    const Gate &gate;
    const PinWatch &pins;
    const Names &names;
    const Limits &limits;
    RouterCounters &counters;
    Reactor &reactor;
    std::function<void(std::int32_t level, std::string_view text)> log;
    // Called when the policy's decision on request `number` is no longer needed. `late` is true if
    // the decision has timed out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
    // Called when the policy has decided about all items, or when the decisions have timed out. The
    // view's pending requests can then be served.
    std::function<void(View &view)> on_ready;
    // Called at the end of the current iteration of the event loop if undecided lists were
    // discarded while clients were waiting for them. The owner must then request the lists again.
    std::function<void()> on_again;
  };
  explicit FilteredLists(Needs needs);
  ~FilteredLists();
  FilteredLists(const FilteredLists &) = delete;
  FilteredLists &operator=(const FilteredLists &) = delete;

  bool any() const noexcept { return needs_.gate.filters() || needs_.pins.enforces(); }
  // Returns the items of the view that the session's principal may see, or null if the policy has
  // not decided about all of them.
  const Catalogue *of(View &view, const Session &session);

  // Called when the policy has decided about an item. Numbers that belong to other kinds of policy
  // requests are ignored.
  void answered(std::uint64_t question, bool listed);
  // Logs that the policy has failed, at most once in 10 s.
  void policy_failed(const std::string &item, const std::string &why);
  // Discards all decisions. Called when the items or the rules have changed. Pending requests keep
  // their deadline and wait for the new decisions.
  void forget(View &view);
  // Called when the view is destroyed.
  void end(View &view);

 private:
  bool ask(View &view, FilteredList &list, const Session &session);
  bool shows(FilteredList &list, const Session &session, ItemKind kind, const Lane &lane,
             std::string_view name, std::string_view definition);
  std::uint32_t new_round();
  void start_timer(FilteredList &list);
  void build(const View &view, FilteredList &list);
  void timed_out(FilteredList &list);
  void end_round(FilteredList &list);
  void again_later();

  const Needs needs_;
  // Undecided lists, keyed by FilteredList::round.
  std::unordered_map<std::uint32_t, FilteredList *> rounds_;
  std::uint32_t last_round_ = 0;
  bool again_pending_ = false;
  LogLimit failures_;
};

}  // namespace bulkhead
