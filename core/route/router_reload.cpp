// Other servers while the gateway runs. What is unchanged is not touched; what goes leaves the
// views at once, so that no new call finds it, and ends when its last call has.
#include <algorithm>
#include <string>

#include "route/router.hpp"

namespace bulkhead {
namespace {

constexpr std::uint64_t drain_check_ms = 50;

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
  std::vector<std::unique_ptr<Upstream>> gone = std::move(upstreams_);
  upstreams_.clear();
  any_per_client_ = false;
  for (NextUpstream &n : next) {
    if (n.kept != nullptr) {
      const auto at = std::find_if(gone.begin(), gone.end(),
                                   [&](const auto &upstream) { return upstream.get() == n.kept; });
      upstreams_.push_back(std::move(*at));
      gone.erase(at);
    } else {
      n.fresh->former = n.replaces;
      upstreams_.push_back(std::move(n.fresh));
    }
    if (upstreams_.back()->def().session == SessionScope::per_client) any_per_client_ = true;
  }
  for (const auto &upstream : gone) {
    approvals_.forget_server(upstream->name());
    take_out(*upstream);
  }
  if (any_per_client_) split_shared_views();
  for (const auto &view : views_) place_lanes(*view);
  move_subscriptions(gone);
  for (const auto &upstream : upstreams_) upstream->former = nullptr;
  for (NextUpstream &n : next) {
    if (n.redefined.has_value()) n.kept->redefine(*std::move(n.redefined));
  }
  // Starting a lane may end others; the list of views stays as it is.
  for (std::size_t i = 0; i < views_.size(); ++i) start_lanes(*views_[i]);
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (views_[i]->deadline_passed && !views_[i]->waiters.empty()) serve_waiters(*views_[i]);
    close_first_list(*views_[i]);  // the last server that was waited for may have gone
  }
  drain(std::move(gone));
  status_changed();
}

void Router::profile_changed() {
  names_ = Names(profile_.naming);
  for (const auto &view : views_) catalogue_changed(*view);
  for (const auto &view : views_) {
    for (Lane *lane : view->lanes) update_log_level(*lane);
  }
}

bool Router::is_draining(const Upstream *upstream) const noexcept {
  return std::any_of(draining_.begin(), draining_.end(),
                     [upstream](const auto &candidate) { return candidate.get() == upstream; });
}

void Router::take_out(Upstream &upstream) {
  for (const auto &lane : upstream.lanes()) {
    for (View *view : lane->views) {
      std::erase(view->lanes, lane.get());
      view->catalogue = nullptr;
    }
    lane->views.clear();
    lane->idle_since_ns = 0;
    lane->drain();
  }
}

// The lanes of new servers, and all of them in the profile's order.
void Router::place_lanes(View &view) {
  std::vector<Lane *> lanes;
  for (const auto &upstream : upstreams_) {
    Lane *lane = upstream->lane_for(view.caps, view.session);
    if (lane == nullptr) continue;
    lanes.push_back(lane);
    if (std::find(view.lanes.begin(), view.lanes.end(), lane) == view.lanes.end()) {
      lane->views.push_back(&view);
      lane->idle_since_ns = 0;
    }
  }
  view.lanes = std::move(lanes);
  catalogue_changed(view);
  if (!view_settled(view)) open_first_list(view);
}

// The first server with a conversation per client: clients that shared a view get their own. Lanes
// that may be shared still are.
void Router::split_shared_views() {
  std::vector<Session *> shared;
  for (const auto &view : views_) {
    if (view->session != 0) continue;
    shared.insert(shared.end(), view->clients.begin(), view->clients.end());
  }
  std::vector<View *> left;
  for (Session *s : shared) {
    View &old = *s->view;
    if (std::find(left.begin(), left.end(), &old) == left.end()) left.push_back(&old);
    View &own = *views_.emplace_back(std::make_unique<View>());
    own.router = this;
    own.caps = s->caps;
    own.session = s->handle;
    own.version = old.version;
    own.shown = old.shown;
    own.deadline_passed = true;
    own.clients.push_back(s);
    s->view = &own;
    std::erase(old.clients, s);
    std::erase_if(old.waiters, [&](View::Waiter &waiter) {
      if (waiter.reply.session != s->handle) return false;
      own.waiters.push_back(std::move(waiter));
      return true;
    });
    place_lanes(own);
  }
  for (View *view : left) view_left(*view);
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

bool Router::lane_busy(const Lane &lane) const {
  for (const auto &other : lane.upstream().lanes()) {
    if (other->pool_of == &lane && lane_busy(*other)) return true;
  }
  for (const Exchange *e = lane.exchanges.head; e != nullptr; e = e->lane_next) {
    if (e->purpose == Purpose::call) return true;
  }
  return !kept_for(lane).empty();
}

void Router::drain(std::vector<std::unique_ptr<Upstream>> gone) {
  for (auto &upstream : gone) {
    upstream->drain_until_ns = reactor_.now_ns() + limits().drain_ms * 1'000'000u;
    draining_.push_back(std::move(upstream));
  }
  if (draining_.empty()) return;
  start_drain_timer();
  sweep_later();
}

void Router::start_drain_timer() {
  if (drain_timer_ != 0) return;
  drain_timer_ = reactor_.timer_start(
      this, drain_check_ms,
      [](void *arg) {
        auto &self = *static_cast<Router *>(arg);
        self.drain_timer_ = 0;
        self.sweep();
        if (!self.draining_.empty()) self.start_drain_timer();
      },
      this);
}

// Never at once: whoever ends an exchange may stand inside a call of that lane.
void Router::sweep_later() {
  if (sweep_pending_) return;
  sweep_pending_ = true;
  reactor_.defer(
      this,
      [](void *arg) {
        auto &self = *static_cast<Router *>(arg);
        self.sweep_pending_ = false;
        self.sweep();
      },
      this);
}

void Router::sweep() {
  if (draining_.empty() || ending_) return;
  const std::uint64_t now = reactor_.now_ns();
  for (const auto &upstream : draining_) {
    std::vector<Lane *> ended;
    for (const auto &lane : upstream->lanes()) {
      // Without a connection, and there will be none, nothing can go on.
      const bool over = now >= upstream->drain_until_ns || lane->state() == LaneState::waiting;
      if (over) end_drained_calls(*lane);
      if (!lane_busy(*lane)) ended.push_back(lane.get());
    }
    for (Lane *lane : ended) upstream->remove(lane);
  }
  const std::size_t before = draining_.size();
  std::erase_if(draining_, [](const auto &upstream) { return upstream->lanes().empty(); });
  if (draining_.size() == before) return;
  status_changed();
  if (hooks_.on_drained) hooks_.on_drained();
}

void Router::end_drained_calls(Lane &lane) {
  std::vector<std::uint64_t> ids = kept_for(lane);
  for (const Exchange *e = lane.exchanges.head; e != nullptr; e = e->lane_next) {
    if (e->purpose == Purpose::call) ids.push_back(e->id);
  }
  for (const std::uint64_t id : ids) {
    Exchange *e = exchanges_.get(id);
    if (e == nullptr) continue;
    const bool sent = e->sent;
    const bh_session client = e->reply.session;
    const bool attached = e->lane != nullptr;
    fail_exchange(*e, code::internal_error,
                  "server \"" + lane.upstream().name() +
                      "\" was removed or changed by a reload while it worked on this" +
                      (sent ? "; it may have run" : "; it has not run"),
                  BH_OUTCOME_ERROR);
    if (attached) retract(&lane, id, sent, session(client), {}, nullptr);
  }
}

}  // namespace bulkhead
