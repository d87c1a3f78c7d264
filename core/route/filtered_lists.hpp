// Lists that a policy filters. The policy is asked once for each item, per principal and list.
// Requests for an undecided list wait together with the requests that wait for servers
// (View::waiters).
//
// Owner: the Router. Runs on the reactor thread. Limit: limits.policy_timeout_ms for each list.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>

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
    // Called when the policy decision for request `number` is no longer needed. `late` is true if
    // the policy request timed out.
    std::function<void(std::uint64_t number, bool late)> on_unanswered;
    // Called when the view's pending requests can be served because all items have been decided or
    // have timed out.
    std::function<void(View &view)> on_ready;
    // Called in a later turn if lists were discarded while clients were waiting for them. The lists
    // are then requested again.
    std::function<void()> on_again;
  };
  explicit FilteredLists(Needs needs);
  ~FilteredLists();
  FilteredLists(const FilteredLists &) = delete;
  FilteredLists &operator=(const FilteredLists &) = delete;

  bool any() const noexcept { return needs_.gate.filters() || needs_.pins.enforces(); }
  // Returns the part of the view that the session's principal may see, or null if some of its items
  // are undecided.
  const Catalogue *of(View &view, const Session &session);

  // Receives the policy's answer for an item. Numbers of other requests are ignored.
  void answered(std::uint64_t question, bool listed);
  // Called when the items or the rules have changed. Pending requests keep their deadline and wait
  // for new decisions.
  void forget(View &view);
  // Called when the view ends.
  void end(View &view);

 private:
  bool ask(View &view, FilteredList &list, const Session &session);
  bool shows(FilteredList &list, const Session &session, ItemKind kind, const Upstream &upstream,
             std::string_view name, std::string_view definition) const;
  std::uint32_t new_round();
  void start_timer(FilteredList &list);
  void build(const View &view, FilteredList &list);
  void timed_out(FilteredList &list);
  void end_round(FilteredList &list);
  void again_later();

  const Needs needs_;
  // Undecided lists, keyed by the number of their round of requests.
  std::unordered_map<std::uint32_t, FilteredList *> rounds_;
  std::uint32_t last_round_ = 0;
  bool again_pending_ = false;
};

}  // namespace bulkhead
