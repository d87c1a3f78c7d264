#include "route/views.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/listen_messages.hpp"
#include "route/request_scopes.hpp"

namespace bulkhead {

bool is_settled(const View &view) {
  return std::all_of(view.lanes.begin(), view.lanes.end(),
                     [](const Lane *lane) { return lane->settled() || lane->listed(); });
}

std::shared_ptr<const Catalogue> build_catalogue(const View &view, const Names &names,
                                                 const Catalogue::Keep &keep) {
  std::vector<CatalogueSource> sources;
  for (const Lane *lane : view.lanes) {
    // A server that is down keeps its names: aliases cannot use them, and neither can other servers
    // if names have no prefixes.
    CatalogueSource source{lane->upstream().name(), {}, lane->listed()};
    for (const ItemKind kind : all_item_kinds) {
      source.lists[static_cast<std::size_t>(kind)] = &lane->items(kind);
    }
    sources.push_back(source);
  }
  return std::make_shared<const Catalogue>(Catalogue::build(sources, names, keep));
}

// Returns true if requests with these capabilities can use the view. Once a server in the view has
// begun to ask clients, it needs a separate lane, so the requests need a new view.
static bool fits_scope(const View &view, ClientCaps caps) {
  return view.caps == caps &&
         std::none_of(view.lanes.begin(), view.lanes.end(), [&](const Lane *lane) {
           return lane->session() == 0 && lane->upstream().has_own_lane(caps, view.session);
         });
}

Views::~Views() {
  needs_.reactor.forget(this);
}

// ---- clients ---------------------------------------------------------------------------------

void Views::start_pinned() {
  View &view = views_.add(0);
  view.owner = this;
  view.pinned = true;
  fill(view);
}

View &Views::join(Session &s) {
  const ClientCaps caps = s.caps & cap::shareable;
  const ClientCaps own_caps = s.caps & ~cap::tasks;  // tasks are declared for each request
  const std::uint64_t key = s.is_sessionless() ? s.scope : s.handle;
  const std::uint64_t own = needs_.upstreams.any_own_lane(s.caps, key) ? key : 0;
  // The capabilities of a session with its own view never change. Sessionless requests share a
  // scope, but each of them has its own capabilities.
  View *view = views_.find(own, [&](const View &candidate) {
    if (own == 0) return candidate.caps == caps;
    return !RequestScopes::is_scope(own) || fits_scope(candidate, own_caps);
  });
  if (view == nullptr) {
    view = &views_.add(own);
    view->owner = this;
    view->caps = own != 0 ? own_caps : caps;
    fill(*view);
  }
  needs_.reactor.timer_cancel(std::exchange(view->idle_timer, 0));
  view->retired = false;
  view->clients.push_back(&s);
  s.view = view;
  update_log_levels(s, *view);
  return *view;
}

void Views::fill(View &view) {
  open_first_list(view);
  for (const auto &upstream : needs_.upstreams.all()) {
    Lane *lane = upstream->lane_for(view.caps, view.session);
    if (lane == nullptr) continue;
    view.lanes.push_back(lane);
    lane->views.push_back(&view);
    lane->idle_since_ns = 0;
  }
  start_lanes(view);
}

// Must be called after all lanes have been added to the view, because a lane may settle
// immediately, and the view must know all of its lanes by then.
void Views::start_lanes(View &view) {
  for (Lane *lane : std::vector<Lane *>(view.lanes)) {
    if (lane->state() != LaneState::idle) continue;
    lane->recall();
    if (lane->lazy()) {
      lane->settle_unstarted();
    } else {
      lane->start();
    }
  }
}

void Views::leave(Session &s) {
  View *view = std::exchange(s.view, nullptr);
  if (view == nullptr) return;
  std::erase(view->clients, &s);
  update_log_levels(s, *view);
  left(*view);
}

void Views::left(View &view) {
  if (!view.clients.empty() || view.pinned) return;
  const bool ends = view.session != 0 && !RequestScopes::is_scope(view.session);
  if (ends || view.ended || view.retired || ending_) return drop(view);
  view.idle_timer = needs_.reactor.timer_start(this, needs_.profile.limits.idle_view_ms,
                                               bh::callback(&view, [](View &v) {
                                                 v.idle_timer = 0;
                                                 v.owner->drop(v);
                                               }));
}

void Views::retire(ClientCaps caps) {
  std::vector<View *> unused;
  for (const auto &view : views_) {
    if (view->pinned || (view->caps & cap::shareable) != caps) continue;
    view->retired = true;
    if (view->clients.empty()) unused.push_back(view.get());
  }
  for (View *view : unused) drop(*view);
}

// No further request can have the scope. A parked call of the connection may still use its view,
// because its client can answer on another connection.
void Views::end_scope(std::uint64_t scope) {
  std::vector<View *> unused;
  views_.for_each(scope, [&unused](View &view) {
    view.ended = !view.clients.empty();
    if (!view.ended) unused.push_back(&view);
  });
  for (View *view : unused) drop(*view);
}

// Removes the view together with the lanes that no other view uses. If the view belongs to a single
// session or request scope, its shared lanes are kept for limits.idle_view_ms, so that they are
// available to the next client.
void Views::drop(View &view) {
  needs_.reactor.timer_cancel(view.deadline_timer);
  needs_.reactor.timer_cancel(view.idle_timer);
  needs_.filters.end(view);
  for (Lane *lane : view.lanes) {
    std::erase(lane->views, &view);
    if (!lane->views.empty()) continue;
    if (view.session == 0 || lane->session() != 0 || view.retired || ending_) {
      remove_lane(*lane);
    } else {
      lane->idle_since_ns = needs_.reactor.now_ns();
      start_idle_timer();
    }
  }
  views_.erase(view);
  needs_.on_status();
}

void Views::remove_lane(Lane &lane) {
  needs_.on_lane_goes(lane);
  lane.upstream().remove(&lane);
}

void Views::start_idle_timer() {
  if (idle_timer_ != 0) return;
  idle_timer_ = needs_.reactor.timer_start(this, needs_.profile.limits.idle_view_ms,
                                           bh::callback(this, [](Views &self) {
                                             self.idle_timer_ = 0;
                                             self.remove_idle_lanes();
                                           }));
}

void Views::remove_idle_lanes() {
  const std::uint64_t idle_ns = needs_.profile.limits.idle_view_ms * 1'000'000u;
  bool more = false;
  for (const auto &upstream : needs_.upstreams.all()) {
    std::vector<Lane *> idle;
    for (const auto &lane : upstream->lanes()) {
      if (lane->idle_since_ns == 0) continue;
      if (needs_.reactor.now_ns() - lane->idle_since_ns >= idle_ns) {
        idle.push_back(lane.get());
      } else {
        more = true;
      }
    }
    for (Lane *lane : idle) remove_lane(*lane);
  }
  if (more) start_idle_timer();
  needs_.on_status();
}

// Removes all views, so that a status query does not see a lane that no longer exists.
void Views::end_all() {
  ending_ = true;
  for (const auto &view : views_) {
    needs_.reactor.timer_cancel(view->deadline_timer);
    needs_.reactor.timer_cancel(view->idle_timer);
    needs_.filters.end(*view);
    for (Lane *lane : view->lanes) lane->views.clear();
  }
  views_.clear();
}

// ---- lists -----------------------------------------------------------------------------------

const Catalogue &Views::catalogue(View &view) {
  if (view.catalogue == nullptr) view.catalogue = build_catalogue(view, needs_.names, {});
  return *view.catalogue;
}

// Returns the catalogue that is listed to the session. With a filtering policy, it is specific to
// the principal. Names are still resolved through the complete catalogue, because each call is
// evaluated individually.
const Catalogue *Views::listed_to(View &view, const Session &s) {
  return needs_.filters.any() ? needs_.filters.of(view, s) : &catalogue(view);
}

bool Views::all_settled() const {
  return std::all_of(views_.begin(), views_.end(), [](const auto &view) {
    return std::all_of(view->lanes.begin(), view->lanes.end(),
                       [](const Lane *lane) { return lane->settled(); });
  });
}

// The catalogue is not built for this query while servers are still starting. Otherwise, all lists
// would be merged again for each server, although the collisions are complete only after the last
// one.
std::vector<std::string> Views::collisions() {
  if (views_.empty()) return {};
  View &view = views_[0];
  if (view.catalogue == nullptr && !is_settled(view)) return {};
  return catalogue(view).collisions();
}

// ---- waiting for the first answers of all servers ----------------------------------------------

// Makes requests wait until every server has responded or failed, but for at most
// limits.first_list_wait_ms.
void Views::open_first_list(View &view) {
  needs_.reactor.timer_cancel(view.deadline_timer);
  view.deadline_passed = false;
  view.deadline_timer = needs_.reactor.timer_start(
      this, stage_time_ms(needs_.profile.limits, Stage::awaiting_list, 0),
      bh::callback(&view, [](View &v) {
        v.deadline_timer = 0;
        v.deadline_passed = true;
        v.owner->serve(v);
      }));
}

// Serves the waiting requests once the last server has responded or failed.
void Views::close_first_list(View &view) {
  if (view.deadline_timer == 0 || !is_settled(view)) return;
  needs_.reactor.timer_cancel(std::exchange(view.deadline_timer, 0));
  view.deadline_passed = true;
  serve(view);
}

void Views::wait(View &view, Incoming &request) {
  const Limits &limits = needs_.profile.limits;
  std::size_t bytes = request.message.size();
  std::size_t own = 0;
  for (const View::Waiter &waiter : view.waiters) {
    bytes += waiter.message.size();
    own += waiter.reply.session == request.reply.session ? 1 : 0;
  }
  if (view.waiters.size() >= max_waiters || bytes > limits.message_bytes ||
      own >= limits.in_flight_per_session) {
    return needs_.answers.error(
        request, code::timeout,
        "the list is not available yet, and too many requests are waiting for it");
  }
  const Session *s = needs_.sessions.find(request.reply.session);
  request.recorded = true;  // the request is handled again, and recorded then
  view.waiters.push_back({request.reply, ParkedMessage(request.message),
                          s == nullptr ? std::string() : s->process_name, request.start_ns});
}

void Views::serve(View &view) {
  const std::vector<View::Waiter> waiters = std::exchange(view.waiters, {});
  for (const View::Waiter &waiter : waiters) {
    Session *s = needs_.sessions.find(waiter.reply.session);
    if (s == nullptr) continue;
    const std::string now = std::exchange(s->process_name, waiter.process_name);
    Incoming request{waiter.reply, waiter.message.get(), waiter.start_ns};
    needs_.handle_again(*s, request);
    if (Session *still = needs_.sessions.find(waiter.reply.session)) still->process_name = now;
  }
  needs_.on_lists(view);
  needs_.on_idle();
}

void Views::serve_ready() {
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (is_ready(views_[i])) serve(views_[i]);
  }
}

bool Views::anybody_waits() const {
  return std::any_of(views_.begin(), views_.end(),
                     [](const auto &view) { return !view->waiters.empty(); });
}

// A request that is waiting for the servers' first responses has not been forwarded yet, so it only
// has to be removed.
std::optional<ReplyTo> Views::cancel_waiting(Session &s, std::string_view id) {
  if (s.view == nullptr) return std::nullopt;
  auto &waiters = s.view->waiters;
  for (auto at = waiters.begin(); at != waiters.end(); ++at) {
    if (at->reply.session != s.handle || at->message.get().id() != id) continue;
    const ReplyTo reply = at->reply;
    record_cancelled(*at, "cancelled by the client");
    waiters.erase(at);
    return reply;
  }
  return std::nullopt;
}

void Views::drop_waiters(Session &s) {
  for (const View::Waiter &waiter : take_waiters(s)) {
    record_cancelled(waiter, "the client disconnected");
  }
}

std::vector<View::Waiter> Views::take_waiters(Session &s) {
  std::vector<View::Waiter> own;
  if (s.view == nullptr) return own;
  std::erase_if(s.view->waiters, [&](View::Waiter &waiter) {
    if (waiter.reply.session != s.handle) return false;
    own.push_back(std::move(waiter));
    return true;
  });
  return own;
}

void Views::put_waiters(View &view, std::vector<View::Waiter> waiters) {
  if (waiters.empty()) return;
  std::move(waiters.begin(), waiters.end(), std::back_inserter(view.waiters));
  if (is_ready(view)) serve(view);
}

void Views::record_cancelled(const View::Waiter &waiter, std::string_view why) {
  if (!needs_.recorder.active()) return;
  const bh_session handle = waiter.reply.session;
  const Message message = waiter.message.get();
  needs_.recorder.record(
      {needs_.sessions.find(handle), handle, message.bytes, message.scan, waiter.start_ns},
      {BH_OUTCOME_CANCELLED, needs_.reactor.now_ns(), 0, {}, why, {}});
}

// ---- lazy servers ----------------------------------------------------------------------------

void Views::wake_unlisted(View &view) {
  std::vector<Lane *> unlisted;
  for (Lane *lane : view.lanes) {
    if (lane->unknown()) unlisted.push_back(lane);
  }
  wake(view, unlisted);
}

void Views::wake_holders(View &view, ItemKind kind, std::string_view name) {
  std::vector<Lane *> unlisted;
  for (Lane *lane : view.lanes) {
    if (!lane->unknown() || !may_hold(*lane, kind, name)) continue;
    // A server's own URI has no prefix, so it does not show which server it belongs to.
    const bool original = kind == ItemKind::resource && !needs_.names.split_uri(name).has_value();
    if (!original || lane->upstream().may_have(name)) unlisted.push_back(lane);
  }
  wake(view, unlisted);
}

void Views::wake(View &view, const std::vector<Lane *> &unlisted) {
  if (unlisted.empty()) return;
  open_first_list(view);
  // All lanes are marked as expected before the first one is started, because a lane may fail as
  // soon as it is started.
  for (Lane *lane : unlisted) lane->expect();
  for (Lane *lane : unlisted) lane->start();
}

bool Views::may_hold(const Lane &lane, ItemKind kind, std::string_view name) const {
  const std::string &server = lane.upstream().name();
  return kind == ItemKind::resource ? needs_.names.uri_may_be_of(server, name)
                                    : needs_.names.may_be_of(server, name);
}

bool Views::awaits_holder(View &view, ItemKind kind, std::string_view name,
                          const Incoming &request) {
  const std::uint64_t wait_ns = needs_.profile.limits.first_list_wait_ms * 1'000'000u;
  if (needs_.reactor.now_ns() - request.start_ns >= wait_ns) return false;
  const bool awaited = std::any_of(view.lanes.begin(), view.lanes.end(), [&](const Lane *lane) {
    return lane->state() == LaneState::connecting && lane->recalled() &&
           may_hold(*lane, kind, name);
  });
  if (awaited && view.deadline_timer == 0) open_first_list(view);
  return awaited;
}

// ---- lane events -----------------------------------------------------------------------------

void Views::lane_changed(Lane &lane) {
  needs_.on_status();
  for (View *view : std::vector<View *>(lane.views)) close_first_list(*view);
}

void Views::items_changed(Lane &lane) {
  // The views have only the first connection of a pool, but the lists of the others affect pins.
  const Lane &first = lane.pool_of != nullptr ? *lane.pool_of : lane;
  for (View *view : first.views) changed(*view);
}

// Most sessionless requests do not set a log level, so they do not affect the server's level.
void Views::update_log_levels(const Session &s, const View &view) {
  if (s.is_sessionless() && s.log_level < 0) return;
  for (Lane *lane : view.lanes) update_log_level(*lane);
}

void Views::update_log_level(Lane &lane) {
  int level = -1;
  for (const View *view : lane.views) {
    for (const Session *s : view->clients) {
      if (s->log_level >= 0 && (level < 0 || s->log_level < level)) level = s->log_level;
    }
  }
  if (level < 0 || !lane.server_caps().logging || lane.state() != LaneState::ready) return;
  if (lane.log_level_sent == level) return;
  lane.log_level_sent = level;
  lane.request_quietly(mcp::Method::logging_set_level,
                       "{\"level\":\"" + std::string(log_level_text(level)) + "\"}");
}

// ---- hot reload ------------------------------------------------------------------------------

void Views::names_changed() {
  for (const auto &view : views_) changed(*view);
  for (const auto &view : views_) {
    for (Lane *lane : view->lanes) update_log_level(*lane);
  }
}

void Views::rules_changed() {
  for (const auto &view : views_) needs_.filters.forget(*view);
}

void Views::take_out(const Upstream &upstream) {
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

void Views::place_all() {
  for (const auto &view : views_) place_lanes(*view);
}

// Adds the lanes of new servers and sorts all lanes into profile order.
void Views::place_lanes(View &view) {
  std::vector<Lane *> lanes;
  for (const auto &upstream : needs_.upstreams.all()) {
    Lane *lane = upstream->lane_for(view.caps, view.session);
    if (lane == nullptr) continue;
    lanes.push_back(lane);
    if (std::find(view.lanes.begin(), view.lanes.end(), lane) == view.lanes.end()) {
      lane->views.push_back(&view);
      lane->idle_since_ns = 0;
    }
  }
  view.lanes = std::move(lanes);
  changed(view);
  if (!is_settled(view)) open_first_list(view);
}

// Starting a lane may end other lanes, but it does not change the list of views.
void Views::start_all() {
  for (std::size_t i = 0; i < views_.size(); ++i) start_lanes(views_[i]);
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (views_[i].deadline_passed && !views_[i].waiters.empty()) serve(views_[i]);
    close_first_list(views_[i]);  // the last awaited server may be gone
  }
}

// Called during a reload. If a server now needs a connection per client (for all clients, or for
// those with roots), the clients that shared a view get their own views. Lanes that may be shared
// remain shared. Sessionless requests stay in their view until they are answered.
void Views::split_shared() {
  std::vector<Session *> shared;
  for (const auto &view : views_) {
    if (view->session != 0) continue;
    std::copy_if(view->clients.begin(), view->clients.end(), std::back_inserter(shared),
                 [&](const Session *s) {
                   return !s->is_sessionless() && needs_.upstreams.any_own_lane(s->caps, s->handle);
                 });
  }
  std::vector<View *> before;
  for (Session *s : shared) {
    if (std::find(before.begin(), before.end(), s->view) == before.end()) before.push_back(s->view);
    place_lanes(split_off(*s));
  }
  for (View *view : before) left(*view);
}

View &Views::split_off(Session &s) {
  View &old = *s.view;
  std::vector<View::Waiter> waiters = take_waiters(s);
  View &own = views_.add(s.handle);
  own.owner = this;
  own.caps = s.caps;
  own.shown = old.shown;
  own.deadline_passed = true;
  own.clients.push_back(&s);
  own.waiters = std::move(waiters);
  std::erase(old.clients, &s);
  s.view = &own;
  return own;
}

// ---- notifying clients of changes ------------------------------------------------------------

void Views::changed(View &view) {
  view.catalogue = nullptr;
  needs_.filters.forget(view);
  if (std::exchange(view.announcing, true)) return;
  needs_.reactor.defer(this, bh::callback<&Views::announce_all>(this));
}

// views_ may change while a client is notified, so each iteration searches the table again.
void Views::announce_all() {
  const auto next = [this] {
    return std::find_if(views_.begin(), views_.end(),
                        [](const auto &view) { return view->announcing; });
  };
  for (auto at = next(); at != views_.end(); at = next()) announce(**at);
}

// While an announcement is pending, keeps the previous list: the clients that have seen it must
// still be notified of the change.
void Views::mark_shown(View &view) {
  if (view.announcing && view.shown != nullptr) return;
  catalogue(view);
  view.shown = view.catalogue;
}

void Views::announce(View &view) {
  view.announcing = false;
  needs_.on_lists(view);
  const auto before = std::exchange(view.shown, nullptr);
  if (!needs_.profile.expose.list_changed || before == nullptr || view.clients.empty()) return;
  catalogue(view);
  const auto now = view.shown = view.catalogue;
  // One notification covers the lists of resources and of resource templates.
  const bool same_templates = before->same_list(ItemKind::resource_template, *now);
  for (const ItemKind kind : all_item_kinds) {
    if (kind == ItemKind::resource_template) continue;
    if (before->same_list(kind, *now) && (kind != ItemKind::resource || same_templates)) continue;
    for (const Session *s : std::vector<Session *>(view.clients)) tell_list_changed(*s, kind);
  }
}

void Views::tell_list_changed(const Session &s, ItemKind kind) {
  unsigned kinds = 1u << static_cast<unsigned>(kind);
  if (kind == ItemKind::resource) kinds |= 1u << static_cast<unsigned>(ItemKind::resource_template);
  if ((s.listed & kinds) == 0) return;
  if (s.is_sessionless() && !s.ready) return;  // no acknowledged subscriptions/listen request
  const std::string method = std::string(facts(kind).member) + "/list_changed";
  if (s.is_sessionless()) {
    return needs_.answers.event({s.handle, s.stream, 0}, listen_notification(method, s.request_id));
  }
  needs_.answers.event({s.handle, 0, 0},
                       R"({"jsonrpc":"2.0","method":"notifications/)" + method + R"("})");
}

}  // namespace bulkhead
