// Replaces servers, names, pins and rules while the gateway runs. Unchanged parts are not touched.
// A removed server leaves the views immediately, so new calls do not find it, and ends after its
// last call.
//
// Owner: the Router. Runs on the reactor thread, never inside a call to a plugin.
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

// A server in the new list for exchange_upstreams().
struct NextUpstream {
  Upstream *kept = nullptr;            // an existing server that is kept with its lanes
  std::optional<ServerDef> redefined;  // for a kept server: its new definition
  std::unique_ptr<Upstream> fresh;     // a new server that is not yet in the list
  const Upstream *replaces = nullptr;  // for a new server: the previous server with the same name
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
    // Called from the event loop when a removed server's last lane has ended, never from inside
    // another call.
    std::function<void()> on_drained;
  };
  explicit Reload(Needs needs) : needs_(std::move(needs)) {}

  // Makes `next` the list of servers, in this order. Servers that `next` does not contain leave
  // every view immediately and drain: their calls may run for limits.drain_ms, after which they
  // fail. Clients keep their sessions and are notified of changed lists.
  void exchange_upstreams(std::vector<NextUpstream> next);
  // Called when names, limits or the exposed methods have changed. Their values are read from the
  // profile.
  void profile_changed();
  // Called when the approved definitions of tools have changed.
  void use_pins();
  void policy_changed();

  // Called when the lane is about to end. Calls that have not yet reached the lane fail.
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
