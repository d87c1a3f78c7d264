// Hot reload: replaces servers, names, pins and rules without a restart. Unchanged servers keep
// their lanes. A removed server is removed from the views immediately, so it receives no new calls.
// It is closed after its last call has ended.
//
// Owner: the Router. Runs on the reactor thread, never during a call to a plugin.
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
#include "route/client_inputs.hpp"
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

// A server in the list that is passed to exchange_upstreams().
struct NextUpstream {
  Upstream *kept = nullptr;            // an existing server, which is kept with its lanes
  std::optional<ServerDef> redefined;  // new definition of `kept`, if it has changed
  std::unique_ptr<Upstream> fresh;     // a new server
  // For `fresh`: the previous server with the same name, or null.
  const Upstream *replaces = nullptr;
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
    ClientInputs &inputs;
    Draining &draining;
    SessionJournal &journal;
    std::function<void()> on_status;
    // Called when the last lane of a removed server has been closed. Always called directly from
    // the event loop.
    std::function<void()> on_drained;
  };
  explicit Reload(Needs needs) : needs_(std::move(needs)) {}

  // Replaces the list of servers with `next`, in this order. Servers that are not in `next` are
  // removed from all views immediately. Their in-flight calls may continue for limits.drain_ms and
  // then fail. Clients keep their sessions and are notified of changed lists.
  void exchange_upstreams(std::vector<NextUpstream> next);
  // Called when the names, limits or exposed methods in the profile have changed.
  void profile_changed();
  // Called when the approved tool definitions have changed.
  void use_pins();
  void policy_changed();

  // Called before the lane is closed. Fails the calls that have not been sent to the lane yet.
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
