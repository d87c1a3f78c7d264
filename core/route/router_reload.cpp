// Other servers while the gateway runs. What is unchanged is not touched; what goes leaves the
// views at once, so that no new call finds it, and ends when its last call has.
#include <algorithm>
#include <string>

#include "route/router.hpp"
#include "route/splice.hpp"

namespace bulkhead {
namespace {

// The client's subscriptions at such lanes, by its spelling.
template <class Which>
std::vector<std::pair<std::string, Lane *>> watched_at(const Session &s, const Which &which) {
  std::vector<std::pair<std::string, Lane *>> out;
  for (const auto &[token, subscription] : s.subscriptions) {
    if (which(subscription.lane)) out.emplace_back(token, subscription.lane);
  }
  return out;
}

// The lane of its view that takes the place of this one; null: none does.
Lane *heir_of(const Session &s, const Lane &gone) {
  if (s.view == nullptr) return nullptr;
  const auto &lanes = s.view->lanes;
  const auto heir = std::find_if(lanes.begin(), lanes.end(), [&](const Lane *lane) {
    return lane->upstream().former == &gone.upstream();
  });
  return heir == lanes.end() ? nullptr : *heir;
}

}  // namespace

void Router::exchange_upstreams(std::vector<NextUpstream> next) {
  if (ending_) return;
  Upstreams::List gone = upstreams_.take_all();
  for (NextUpstream &n : next) {
    if (n.kept != nullptr) {
      const auto at = std::find_if(gone.begin(), gone.end(),
                                   [&](const auto &upstream) { return upstream.get() == n.kept; });
      upstreams_.add(std::move(*at));
      gone.erase(at);
    } else {
      n.fresh->former = n.replaces;
      upstreams_.add(std::move(n.fresh));
    }
  }
  for (const auto &upstream : gone) desk_.forget_server(upstream->name());
  views_.exchange(gone, [&] {
    move_subscriptions(gone);
    for (const auto &upstream : upstreams_.all()) upstream->former = nullptr;
    for (NextUpstream &n : next) {
      if (n.redefined.has_value()) n.kept->redefine(*std::move(n.redefined));
    }
  });
  draining_.add(std::move(gone));
  status_changed();
}

void Router::profile_changed() {
  names_ = Names(profile_.naming);
  views_.names_changed();
}

void Router::use_pins() {
  std::vector<const Lane *> lanes;
  for (const auto &upstream : upstreams_.all()) {
    for (const auto &lane : upstream->lanes()) {
      if (lane->listed()) lanes.push_back(lane.get());
    }
  }
  if (pins_.use_profile(lanes)) policy_changed();
}

void Router::policy_changed() {
  std::vector<Session *> clients;
  calls_.rules_changed();
  views_.rules_changed();
  views_.for_each([&](const View &view) {
    clients.insert(clients.end(), view.clients.begin(), view.clients.end());
  });
  if (gate_.decides()) {
    std::vector<bh_session> watching;
    sessions_.for_each([&](const Session &s) {
      if (!s.subscriptions.empty()) watching.push_back(s.handle);
    });
    for (const bh_session handle : watching) subscriptions_.judge_again(handle);
  }
  if (!profile_.expose.list_changed) return;
  // A client may do anything while it is notified, but end its session.
  for (const Session *s : clients) {
    for (const ItemKind kind : all_item_kinds) {
      if (kind != ItemKind::resource_template) views_.tell_list_changed(*s, kind);
    }
  }
}

// Subscriptions at a server that was changed go over to its new connection, which subscribes when
// it is ready; those at one that has gone end with it.
void Router::move_subscriptions(const std::vector<std::unique_ptr<Upstream>> &gone) {
  const auto has_gone = [&](const Lane *lane) {
    return std::any_of(gone.begin(), gone.end(),
                       [&](const auto &upstream) { return &lane->upstream() == upstream.get(); });
  };
  for (const bh_session handle : sessions_.handles()) {
    Session *s = session(handle);
    for (const auto &[token, lane] : watched_at(*s, has_gone)) {
      subscriptions_.move(*s, token, heir_of(*s, *lane));
    }
    save(*s);
  }
}

// ---- what goes -------------------------------------------------------------------------------

// Calls that a policy or a person has not decided yet would be sent to it.
void Router::lane_goes(Lane &lane) {
  for (const std::uint64_t id : waiting_for(lane)) {
    Exchange *e = exchanges_.get(id);
    if (e == nullptr) continue;
    fail_exchange(*e, code::internal_error,
                  "server \"" + lane.upstream().name() +
                      "\" was let go before the call was decided; it has not run",
                  BH_OUTCOME_ERROR);
  }
}

void Router::end_drained(Exchange &e, Lane &lane) {
  calls_.fail_and_retract(e, code::internal_error,
                          "server \"" + lane.upstream().name() +
                              "\" was removed or changed by a reload while it worked on this" +
                              (e.sent ? "; it may have run" : "; it has not run"),
                          BH_OUTCOME_ERROR);
}

void Router::drained() {
  status_changed();
  if (hooks_.on_drained) hooks_.on_drained();
}

// ---- what happens to lanes --------------------------------------------------------------------

// What clients had set up on the old connection is set up again.
void Router::lane_ready(Lane &lane) {
  Subscriptions::lane_ready(lane);
  Views::update_log_level(lane);
}

void Router::lane_lost(Lane &lane) {
  Attribution::connection_lost(lane);
  asks_.connection_lost(lane);
}

void Router::message_lost(const Lane &lane, mcp::Method method) {
  ++counters_.dropped_events;
  log(BH_LOG_ERROR, "server \"" + lane.upstream().name() + "\": " +
                        std::string(mcp::to_string(method)) + " was dropped: " + Splice::failure);
}

}  // namespace bulkhead
