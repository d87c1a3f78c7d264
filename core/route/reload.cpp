#include "route/reload.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "route/calls.hpp"

namespace bulkhead {
namespace {

// Returns the client's subscriptions on lanes that match `which`. Each URI has the form that the
// client uses.
template <class Which>
std::vector<std::pair<std::string, Lane *>> watched_at(const Session &s, const Which &which) {
  std::vector<std::pair<std::string, Lane *>> out;
  for (const auto &[token, subscription] : s.subscriptions) {
    if (which(subscription.lane)) out.emplace_back(token, subscription.lane);
  }
  return out;
}

// Returns the lane in the session's view that replaces `gone`, or null if there is none.
Lane *heir_of(const Session &s, const Lane &gone) {
  if (s.view == nullptr) return nullptr;
  const auto &lanes = s.view->lanes;
  const auto heir = std::find_if(lanes.begin(), lanes.end(), [&](const Lane *lane) {
    return lane->upstream().former == &gone.upstream();
  });
  return heir == lanes.end() ? nullptr : *heir;
}

}  // namespace

void Reload::exchange_upstreams(std::vector<NextUpstream> next) {
  if (needs_.draining.ended()) return;
  Upstreams::List gone = needs_.upstreams.take_all();
  for (NextUpstream &n : next) {
    if (n.kept != nullptr) {
      const auto at = std::find_if(gone.begin(), gone.end(),
                                   [&](const auto &upstream) { return upstream.get() == n.kept; });
      needs_.upstreams.add(std::move(*at));
      gone.erase(at);
    } else {
      n.fresh->former = n.replaces;
      needs_.upstreams.add(std::move(n.fresh));
    }
  }
  for (const auto &upstream : gone) needs_.desk.forget_server(upstream->name());
  needs_.views.exchange(gone, [&] {
    move_subscriptions(gone);
    for (const auto &upstream : needs_.upstreams.all()) upstream->former = nullptr;
    for (NextUpstream &n : next) {
      if (n.redefined.has_value()) n.kept->redefine(*std::move(n.redefined));
    }
  });
  needs_.draining.add(std::move(gone));
  needs_.on_status();
}

void Reload::profile_changed() {
  needs_.names = Names(needs_.profile.naming);
  needs_.views.names_changed();
}

void Reload::use_pins() {
  std::vector<const Lane *> lanes;
  for (const auto &upstream : needs_.upstreams.all()) {
    for (const auto &lane : upstream->lanes()) {
      if (lane->listed()) lanes.push_back(lane.get());
    }
  }
  if (needs_.pins.use_profile(lanes)) policy_changed();
}

void Reload::policy_changed() {
  std::vector<Session *> clients;
  needs_.desk.rules_changed();
  needs_.inputs.rules_changed();
  needs_.pipeline.rules_changed();
  needs_.views.rules_changed();
  needs_.views.for_each([&](const View &view) {
    clients.insert(clients.end(), view.clients.begin(), view.clients.end());
  });
  if (needs_.gate.decides()) {
    std::vector<bh_session> watching;
    needs_.sessions.for_each([&](const Session &s) {
      if (!s.subscriptions.empty()) watching.push_back(s.handle);
    });
    for (const bh_session handle : watching) needs_.subscriptions.judge_again(handle);
  }
  if (!needs_.profile.expose.list_changed) return;
  // The pointers stay valid: a session that is closed while a message is being sent ends later; see
  // Clients::close().
  for (const Session *s : clients) {
    for (const ItemKind kind : all_item_kinds) {
      if (kind != ItemKind::resource_template) needs_.views.tell_list_changed(*s, kind);
    }
  }
}

// Moves the subscriptions to a changed server's resources to the server's new lane, which
// subscribes when it is ready. Subscriptions to a removed server's resources end with the server.
void Reload::move_subscriptions(const std::vector<std::unique_ptr<Upstream>> &gone) {
  const auto has_gone = [&](const Lane *lane) {
    return std::any_of(gone.begin(), gone.end(),
                       [&](const auto &upstream) { return &lane->upstream() == upstream.get(); });
  };
  for (const bh_session handle : needs_.sessions.handles()) {
    Session *s = needs_.sessions.find(handle);
    for (const auto &[token, lane] : watched_at(*s, has_gone)) {
      needs_.subscriptions.move(*s, token, heir_of(*s, *lane));
    }
    needs_.journal.save(*s);
  }
}

// ---- removed lanes ---------------------------------------------------------------------------

// Fails calls that wait for a policy or human approver. Otherwise, they would be sent to the
// removed lane.
void Reload::lane_goes(Lane &lane) {
  for (const std::uint64_t id : needs_.ends.waiting_for(lane)) {
    Call *call = needs_.calls.get(id);
    if (call == nullptr) continue;
    needs_.answers.fail_by_server(
        *call, code::internal_error,
        "server \"" + lane.upstream().name() +
            (may_have_run(*call)
                 ? "\" was removed before the call was sent to it again; the call may have run"
                 : "\" was removed before the call was sent; the call has not run"),
        BH_OUTCOME_ERROR);
  }
}

void Reload::end_drained(Call &call, Lane &lane) {
  needs_.ends.end_drained(
      call, "server \"" + lane.upstream().name() +
                "\" was removed or changed by a reload while this request was in flight" +
                (may_have_run(call) ? "; the request may have run" : "; the request has not run"));
}

void Reload::drained() {
  needs_.on_status();
  needs_.on_drained();
}

}  // namespace bulkhead
