// Other servers, names, pins and rules while the gateway runs. What is unchanged is not touched. A
// server that is removed leaves the views at once, so that no new call finds it, and ends when its
// last call has. Owner: the Router. Thread: [io], nested in no call of a plugin.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "catalog/names.hpp"
#include "profile/profile.hpp"
#include "route/approval_desk.hpp"
#include "route/call_answers.hpp"
#include "route/call_ends.hpp"
#include "route/draining.hpp"
#include "route/gate.hpp"
#include "route/pin_watch.hpp"
#include "route/session_journal.hpp"
#include "route/sessions.hpp"
#include "route/subscriptions.hpp"
#include "route/upstreams.hpp"
#include "route/views.hpp"

namespace bulkhead {

class Calls;

// One server of the set that exchange_upstreams() makes.
struct NextUpstream {
  Upstream *kept = nullptr;            // stays, with its lanes
  std::optional<ServerDef> redefined;  // of one that is kept: its new definition
  std::unique_ptr<Upstream> fresh;     // or a new one, not yet in the list
  const Upstream *replaces = nullptr;  // of a new one: the one of this name before
};

class Reload final : public Draining::Owner {
 public:
  struct Needs {
    const Profile &profile;
    Names &names;
    const Gate &gate;
    PinWatch &pins;
    Upstreams &upstreams;
    Views &views;
    Sessions &sessions;
    Subscriptions &subscriptions;
    Calls &pipeline;
    CallAnswers &answers;
    CallEnds &ends;
    CallTable &calls;
    ApprovalDesk &desk;
    Draining &draining;
    SessionJournal &journal;
    std::function<void()> on_status;
    // The last lane of a server that had been removed has ended; from the loop, nested in nothing.
    std::function<void()> on_drained;
  };
  explicit Reload(Needs needs) : needs_(std::move(needs)) {}

  // Makes `next` the servers, in this order. Those that are in it neither kept nor new leave every
  // view at once and drain: their calls may run for limits.drain_ms and then fail. Clients keep
  // their sessions and are notified of changed lists.
  void exchange_upstreams(std::vector<NextUpstream> next);
  // Names, limits or what is exposed have changed (they are read through the profile).
  void profile_changed();
  // So are the approved definitions of tools.
  void use_pins();
  void policy_changed();

  // The lane is about to end: calls that would still go to it fail.
  void lane_goes(Lane &lane);

  // Draining::Owner
  std::vector<std::uint64_t> waiting_for(const Lane &lane) const override {
    return needs_.ends.waiting_for(lane);
  }
  void end_drained(Call &call, Lane &lane) override;
  void drained() override;

 private:
  void move_subscriptions(const Upstreams::List &gone);

  const Needs needs_;
};

}  // namespace bulkhead
