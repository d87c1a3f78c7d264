// Views: which lanes a client sees, their merged catalogue, and telling clients when it changes.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <string>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"

namespace bulkhead {
namespace {

constexpr std::size_t max_waiters = 1024;

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finalizer
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

View &Router::view_for(Session &s) {
  const ClientCaps caps = s.caps & cap::shareable;
  const std::uint64_t own = any_per_client_ ? s.handle : 0;
  View *view = nullptr;
  for (const auto &candidate : views_) {
    if (candidate->session == own && (own != 0 || candidate->caps == caps)) view = candidate.get();
  }
  if (view == nullptr) {
    view = views_.emplace_back(std::make_unique<View>()).get();
    view->router = this;
    view->caps = own != 0 ? s.caps : caps;
    view->session = own;
    fill_view(*view);
  }
  reactor_.timer_cancel(view->idle_timer);
  view->idle_timer = 0;
  view->clients.push_back(&s);
  s.view = view;
  for (Lane *lane : view->lanes) update_log_level(*lane);
  return *view;
}

// A first list waits from now on until every server has answered or failed.
void Router::open_first_list(View &view) {
  reactor_.timer_cancel(view.deadline_timer);
  view.deadline_passed = false;
  view.deadline_timer = reactor_.timer_start(
      this, limits().first_list_wait_ms,
      [](void *arg) {
        auto &v = *static_cast<View *>(arg);
        v.deadline_timer = 0;
        v.deadline_passed = true;
        v.router->serve_waiters(v);
      },
      &view);
}

void Router::fill_view(View &view) {
  open_first_list(view);
  for (const auto &upstream : upstreams_) {
    Lane *lane = upstream->lane_for(view.caps, view.session);
    if (lane == nullptr) continue;
    view.lanes.push_back(lane);
    lane->views.push_back(&view);
    lane->idle_since_ns = 0;
  }
  start_lanes(view);
}

// After all of them are there: a lane may settle at once, and the view must know all of its lanes
// by then.
void Router::start_lanes(View &view) {
  for (Lane *lane : std::vector<Lane *>(view.lanes)) {
    if (lane->state() != LaneState::idle) continue;
    lane->recall();
    if (lane->lazy()) {
      lane->leave_alone();
    } else {
      lane->start();
    }
  }
}

// Somebody asks what there is: lazy servers whose lists are not known yet are started for it once.
void Router::wake_unlisted(View &view) {
  std::vector<Lane *> unlisted;
  for (Lane *lane : view.lanes) {
    if (lane->unknown()) unlisted.push_back(lane);
  }
  wake(view, unlisted);
}

// A name that no list has is called: only servers that may have it are started.
void Router::wake_holder(View &view, ItemKind kind, std::string_view name) {
  std::vector<Lane *> unlisted;
  for (Lane *lane : view.lanes) {
    if (may_hold(*lane, kind, name) && lane->unknown()) unlisted.push_back(lane);
  }
  wake(view, unlisted);
}

bool Router::may_hold(const Lane &lane, ItemKind kind, std::string_view name) const {
  const std::string &server = lane.upstream().name();
  return kind == ItemKind::resource ? names_.uri_may_be_of(server, name)
                                    : names_.may_be_of(server, name);
}

// Its server lists from memory while it connects: the name may be on the list that it gives then. A
// request waits for that once, as long as a first list does.
bool Router::awaits_holder(const View &view, ItemKind kind, std::string_view name,
                           const Incoming &request) const {
  if (reactor_.now_ns() - request.start_ns >= limits().first_list_wait_ms * 1'000'000u)
    return false;
  return std::any_of(view.lanes.begin(), view.lanes.end(), [&](const Lane *lane) {
    return lane->state() == LaneState::connecting && lane->recalled() &&
           may_hold(*lane, kind, name);
  });
}

void Router::wake(View &view, const std::vector<Lane *> &unlisted) {
  if (unlisted.empty()) return;
  open_first_list(view);
  // All are expected before one is started: that one may fail at once.
  for (Lane *lane : unlisted) lane->expect();
  for (Lane *lane : unlisted) lane->start();
}

void Router::leave_view(Session &s) {
  View *view = s.view;
  if (view == nullptr) return;
  s.view = nullptr;
  std::erase(view->clients, &s);
  for (Lane *lane : view->lanes) update_log_level(*lane);
  view_left(*view);
}

void Router::view_left(View &view) {
  if (!view.clients.empty() || view.pinned) return;
  if (view.session != 0 || ending_) return drop_view(view);
  view.idle_timer = reactor_.timer_start(
      this, limits().idle_view_ms,
      [](void *arg) {
        auto &v = *static_cast<View *>(arg);
        v.idle_timer = 0;
        v.router->drop_view(v);
      },
      &view);
}

// Lanes that no other view uses end with it; shared ones of a view for one session stay a while for
// the next client.
void Router::drop_view(View &view) {
  reactor_.timer_cancel(view.deadline_timer);
  reactor_.timer_cancel(view.idle_timer);
  end_filters(view);
  for (Lane *lane : view.lanes) {
    std::erase(lane->views, &view);
    if (!lane->views.empty()) continue;
    if (view.session == 0 || lane->session() != 0 || ending_) {
      remove_lane(*lane);
    } else {
      lane->idle_since_ns = reactor_.now_ns();
      start_idle_timer();
    }
  }
  std::erase_if(views_, [&](const auto &candidate) { return candidate.get() == &view; });
  status_changed();
}

// Calls that a policy or a person has not decided yet would be sent to it.
void Router::remove_lane(Lane &lane) {
  for (const std::uint64_t id : kept_for(lane)) {
    Exchange *e = exchanges_.get(id);
    if (e == nullptr) continue;
    fail_exchange(*e, code::internal_error,
                  "server \"" + lane.upstream().name() +
                      "\" was let go before the call was decided; it has not run",
                  BH_OUTCOME_ERROR);
  }
  lane.upstream().remove(&lane);
}

void Router::start_idle_timer() {
  if (idle_timer_ != 0) return;
  idle_timer_ = reactor_.timer_start(
      this, limits().idle_view_ms,
      [](void *arg) {
        auto &self = *static_cast<Router *>(arg);
        self.idle_timer_ = 0;
        self.remove_idle_lanes();
      },
      this);
}

void Router::remove_idle_lanes() {
  const std::uint64_t idle_ns = limits().idle_view_ms * 1'000'000u;
  bool more = false;
  for (const auto &upstream : upstreams_) {
    std::vector<Lane *> idle;
    for (const auto &lane : upstream->lanes()) {
      if (lane->idle_since_ns == 0) continue;
      if (reactor_.now_ns() - lane->idle_since_ns >= idle_ns) {
        idle.push_back(lane.get());
      } else {
        more = true;
      }
    }
    for (Lane *lane : idle) remove_lane(*lane);
  }
  if (more) start_idle_timer();
  status_changed();
}

// Nothing more can be expected: each server has answered or failed, or is shown as it was before.
bool Router::view_settled(const View &view) const {
  return std::all_of(view.lanes.begin(), view.lanes.end(),
                     [](const Lane *lane) { return lane->settled() || lane->listed(); });
}

// ---- catalogue -------------------------------------------------------------------------------

const Catalogue &Router::catalogue(View &view) {
  if (view.catalogue == nullptr) view.catalogue = build_catalogue(view, {});
  return *view.catalogue;
}

std::shared_ptr<const Catalogue> Router::build_catalogue(const View &view,
                                                         const Catalogue::Keep &keep) const {
  std::vector<CatalogueSource> sources;
  for (const Lane *lane : view.lanes) {
    // One that is down goes on holding its names: where they have no prefix, and before aliases.
    CatalogueSource source{lane->upstream().name(), {}, lane->listed()};
    for (const ItemKind kind : all_item_kinds) {
      source.lists[static_cast<std::size_t>(kind)] = &lane->items(kind);
    }
    sources.push_back(source);
  }
  return std::make_shared<const Catalogue>(Catalogue::build(sources, names_, keep));
}

// Not made for the question alone while servers still arrive: each of them would have the lists of
// all put together once more, and names that meet are known only with the last.
std::vector<std::string> Router::collisions() {
  if (views_.empty()) return {};
  View &view = *views_.front();
  if (view.catalogue == nullptr && !view_settled(view)) return {};
  return catalogue(view).collisions();
}

// ---- waiting for the first answers of all servers ----------------------------------------------

void Router::wait_for_view(View &view, Incoming &request) {
  const std::string_view message = request.message.bytes;
  std::size_t bytes = message.size();
  std::size_t own = 0;
  for (const View::Waiter &waiter : view.waiters) {
    bytes += waiter.message.size();
    own += waiter.reply.session == request.reply.session ? 1 : 0;
  }
  if (view.waiters.size() >= max_waiters || bytes > limits().message_bytes ||
      own >= limits().in_flight_per_session) {
    return answers_.error(request, code::timeout,
                          "the list is not known yet, and too many requests wait for it");
  }
  const Session *s = session(request.reply.session);
  request.recorded = true;  // it is handled again
  view.waiters.push_back({request.reply, std::string(message),
                          s == nullptr ? std::string() : s->process_name, request.start_ns});
}

void Router::serve_waiters(View &view) {
  const std::vector<View::Waiter> waiters = std::move(view.waiters);
  view.waiters.clear();
  for (const View::Waiter &waiter : waiters) {
    mcp::Scan scan;
    mcp::ScanError error;
    Session *s = session(waiter.reply.session);
    if (s == nullptr || !mcp::scan(waiter.message, &scan, &error)) continue;
    const std::string now = std::exchange(s->process_name, waiter.process_name);
    Incoming request{waiter.reply, {waiter.message, &scan}, waiter.start_ns};
    handle_request(*s, request);
    set_process_name(waiter.reply.session, now);
  }
  renew(view);
  check_idle();
}

// ---- changes ---------------------------------------------------------------------------------

void Router::lane_changed(Lane &lane) {
  status_changed();
  for (View *view : std::vector<View *>(lane.views)) close_first_list(*view);
}

// Nobody waits longer than for the last server.
void Router::close_first_list(View &view) {
  if (view.deadline_timer == 0 || !view_settled(view)) return;
  reactor_.timer_cancel(view.deadline_timer);
  view.deadline_timer = 0;
  view.deadline_passed = true;
  serve_waiters(view);
}

void Router::items_changed(Lane &lane) {
  for (View *view : lane.views) catalogue_changed(*view);
}

void Router::catalogue_changed(View &view) {
  view.catalogue = nullptr;
  forget_filters(view);
  ++view.version;
  if (view.announcing) return;
  view.announcing = true;
  reactor_.defer(
      this,
      [](void *arg) {
        auto &router = *static_cast<Router *>(arg);
        // A client may do anything while it is told; the list of views may be another then.
        const auto next = [&] {
          return std::find_if(router.views_.begin(), router.views_.end(),
                              [](const auto &v) { return v->announcing; });
        };
        for (auto at = next(); at != router.views_.end(); at = next()) router.announce(**at);
      },
      this);
}

// A pending announcement is still owed to those who saw the list before.
void Router::catalogue_shown(View &view) {
  if (view.announcing && view.shown != nullptr) return;
  catalogue(view);
  view.shown = view.catalogue;
}

void Router::announce(View &view) {
  view.announcing = false;
  renew(view);
  const auto before = std::move(view.shown);
  view.shown = nullptr;
  if (!profile_.expose.list_changed || before == nullptr || view.clients.empty()) return;
  catalogue(view);
  const auto now = view.shown = view.catalogue;
  for (const ItemKind kind : all_item_kinds) {
    if (kind == ItemKind::resource_template || before->same_list(kind, *now)) continue;
    for (Session *s : std::vector<Session *>(view.clients)) tell_list_changed(*s, kind);
  }
}

// A client that never listed will see the present list when it does.
void Router::tell_list_changed(Session &s, ItemKind kind) {
  if ((s.listed & (1u << static_cast<unsigned>(kind))) == 0) return;
  const std::string text = R"({"jsonrpc":"2.0","method":"notifications/)" +
                           std::string(facts(kind).member) + R"(/list_changed"})";
  answers_.event({s.handle, 0, 0}, text);
}

// Upstream, the most verbose level that any client of the lane wants; each client's own is applied
// when messages come.
void Router::update_log_level(Lane &lane) {
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

// ---- cursors: opaque, checked, and bound to one version of one list ----------------------------

std::string Router::encode_cursor(const View &view, ItemKind kind, std::uint32_t first) const {
  const std::uint64_t tag = mix(cursor_key_ ^ mix(view.version ^ (std::uint64_t{first} << 32) ^
                                                  (static_cast<std::uint64_t>(kind) << 28)));
  char text[48];
  std::snprintf(text, sizeof text, "%08x%016llx", first, static_cast<unsigned long long>(tag));
  return text;
}

std::optional<std::uint32_t> Router::decode_cursor(const View &view, ItemKind kind,
                                                   std::string_view text) const {
  std::uint32_t first = 0;
  if (text.size() != 24) return std::nullopt;
  const std::string_view number = text.substr(0, 8);
  const char *const last = number.data() + number.size();
  const auto [end, error] = std::from_chars(number.data(), last, first, 16);
  if (error != std::errc{} || end != last) return std::nullopt;
  if (encode_cursor(view, kind, first) != text) return std::nullopt;
  return first;
}

}  // namespace bulkhead
