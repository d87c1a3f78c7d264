// Sessions, answers and time. The other halves: router_client.cpp, router_calls.cpp,
// router_upstream.cpp, router_views.cpp.
#include "route/router.hpp"

#include <sys/random.h>

#include <algorithm>
#include <utility>

#include "route/json_rpc.hpp"
#include "route/splice.hpp"
#include "route/wire_lane.hpp"

namespace bulkhead {
namespace {

// Where the messages of a session go whose client has gone, until it is closed.
class Nobody final : public ClientEnd {
 public:
  void send(const bh_outgoing &) override {}
  void session_ended(bh_session, std::string_view) override {}
};

std::string new_trace_id() {
  unsigned char bytes[16];
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) return {};
  constexpr char digits[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char byte : bytes) out.append({digits[byte >> 4], digits[byte & 15]});
  return out;
}

std::uint64_t random_number(std::uint64_t otherwise) {
  std::uint64_t number = 0;
  return ::getrandom(&number, sizeof number, 0) == sizeof number ? number : otherwise;
}

}  // namespace

Router::Router(const Profile &profile, Reactor &reactor, RouterHooks hooks)
    : profile_(profile),
      reactor_(reactor),
      hooks_(std::move(hooks)),
      names_(profile.naming),
      pins_(
          profile, [this](std::int32_t level, std::string_view text) { log(level, text); },
          hooks_.on_pins),
      recorder_(reactor),
      seed_(random_number(reinterpret_cast<std::uintptr_t>(this) ^ reactor.now_ns())),
      sessions_(random_generation(~seed_)),
      answers_(sessions_, recorder_, reactor, profile.limits, counters_, [this] { check_idle(); }),
      deadlines_(exchanges_, reactor, [this](Exchange &e) { timed_out(e); }),
      attribution_(sessions_, exchanges_, reactor),
      waiting_bytes_(profile.limits),
      duplicate_checks_(reactor,
                        [this](std::uint64_t number, bool found) { checked(number, found); }),
      events_({gate_, sessions_, duplicate_checks_, waiting_bytes_, recorder_, counters_,
               profile.limits, reactor,
               [this](std::int32_t level, std::string_view text) { log(level, text); },
               [this](std::uint64_t number, bool late) { unanswered(number, late); }, *this}),
      // A client that outlives this process answers what an earlier one has asked.
      asks_(random_generation(seed_),
            {gate_, attribution_, sessions_, exchanges_, deadlines_, answers_, events_, counters_,
             profile.limits, reactor,
             [this](const Lane &lane, mcp::Method method) { message_lost(lane, method); }, *this}),
      notifications_(
          {gate_, attribution_, exchanges_, sessions_, answers_, events_, counters_,
           [this](const Lane &lane, mcp::Method method) { message_lost(lane, method); }}),
      subscriptions_(
          {sessions_, exchanges_, events_, notifications_, names_, profile.limits,
           [this](const Session &s) { save(s); },
           [this](const Lane &lane, mcp::Method method) { message_lost(lane, method); }}),
      draining_(profile.limits, reactor, exchanges_, *this),
      filters_({gate_, pins_, names_, profile.limits, counters_, reactor,
                [this](std::int32_t level, std::string_view text) { log(level, text); },
                [this](std::uint64_t number, bool late) { unanswered(number, late); },
                [this](View &view) { views_.serve(view); }, [this] { views_.serve_ready(); }}),
      views_(
          {upstreams_, sessions_, names_, profile, reactor, recorder_, answers_, filters_, *this}),
      judge_(gate_, pins_, recorder_, reactor),
      desk_({profile, reactor, recorder_, counters_, asks_, answers_, hooks_.on_approval,
             hooks_.approval_hint}),
      calls_({profile.limits, reactor, counters_, exchanges_, deadlines_, gate_, judge_,
              duplicate_checks_, waiting_bytes_, desk_, recorder_, answers_, asks_, attribution_,
              subscriptions_, draining_,
              [this](std::int32_t level, std::string_view text) { log(level, text); },
              [this](std::uint64_t number, bool late) { unanswered(number, late); },
              [this] { check_idle(); }}),
      wires_({profile, counters_, exchanges_, calls_, asks_, notifications_, subscriptions_,
              [this](std::int32_t level, std::string_view text) { log(level, text); }}),
      tools_({reactor, exchanges_, calls_, answers_, gate_, notifications_, subscriptions_,
              recorder_, counters_,
              [this](std::int32_t level, std::string_view text) { log(level, text); }}),
      lists_(seed_,
             {views_, names_, profile, recorder_, answers_, [this](const Session &s) { save(s); }}),
      targets_({upstreams_, views_, names_, gate_, answers_}) {
  answers_.on_sessionless_answer([this](Session &s) { end_sessionless(s); });
}

Router::~Router() {
  reactor_.forget(this);
}

void Router::add_upstream(std::unique_ptr<Upstream> upstream) {
  upstreams_.add(std::move(upstream));
}

std::unique_ptr<Upstream> Router::new_upstream(ServerDef definition) {
  return std::make_unique<Upstream>(*this, std::move(definition));
}

void Router::start(bool eager) {
  if (eager) views_.start_pinned();
}

void Router::end_sessions(std::string_view reason) {
  ending_ = true;
  for (const bh_session handle : sessions_.handles()) {
    Session *s = session(handle);
    if (s == nullptr) continue;
    ClientEnd *end = s->end;
    const bool sessionless = s->is_sessionless();
    if (sessionless) {
      answers_.unrecorded_error({handle, s->stream, 0}, {}, code::internal_error, reason, 503);
    }
    close_session(*s);
    if (!sessionless) end->session_ended(handle, reason);
  }
}

void Router::close_lanes() {
  ending_ = true;
  views_.end_all();
  for (const auto &upstream : upstreams_.all()) {
    while (!upstream->lanes().empty()) upstream->remove(upstream->lanes().back().get());
  }
  draining_.end_all();
}

// ---- sessions --------------------------------------------------------------------------------

bh_status Router::session_open(ClientEnd &end, const bh_peer &peer, bh_session *out,
                               bh_error *error) {
  if (ending_) return bh::fail(error, BH_E_UNAVAILABLE, "the gateway is stopping");
  if (session_count() >= limits().sessions) {
    return bh::fail(
        error, BH_E_LIMIT,
        "too many sessions are open (limits.sessions = " + std::to_string(limits().sessions) + ")");
  }
  *out = add_session(end, peer).handle;
  return BH_OK;
}

Session &Router::add_session(ClientEnd &end, const bh_peer &peer) {
  Session &s = sessions_.open(end, peer, reactor_.now_ns());
  if (recorder_.active()) s.trace_id = new_trace_id();
  return s;
}

void Router::set_process_name(bh_session handle, std::string_view name) {
  if (Session *s = session(handle)) s->process_name = name;
}

std::optional<Router::SessionFacts> Router::session_facts(bh_session handle) {
  const Session *s = session(handle);
  if (s == nullptr || !s->initialized) return std::nullopt;
  return SessionFacts{s->revision, s->caps, s->principal};
}

void Router::session_close(bh_session handle, std::uint32_t how) {
  Session *s = session(handle);
  if (s == nullptr) return;
  if (answers_.sending()) {
    // From inside a transport's send(): whoever is sending may be walking over sessions. The end
    // may go at once.
    static Nobody nobody;
    if (how != BH_SESSION_INPUT_ENDED) s->end = &nobody;
    closing_sessions_.emplace_back(handle, how);
    if (closing_sessions_.size() > 1) return;
    return reactor_.defer(
        this, [](void *arg) { static_cast<Router *>(arg)->close_sessions_later(); }, this);
  }
  if (how == BH_SESSION_INPUT_ENDED) {
    s->input_ended = true;
    // Nobody can answer an ask any more; its call goes on and the upstream decides.
    asks_.session_ended(handle);
    calls_.withdraw_questions(*s);
  } else if (how == BH_SESSION_EVICTED) {
    evict(*s);
  } else {
    close_session(*s);
  }
  check_idle();
}

void Router::close_sessions_later() {
  const auto closing = std::move(closing_sessions_);
  closing_sessions_.clear();
  for (const auto &[handle, how] : closing) session_close(handle, how);
}

void Router::close_session(Session &s) {
  s.closing = true;
  desk_.forget_session(s.handle);
  asks_.session_ended(s.handle);
  forget(s);
  calls_.end_session(s);
  subscriptions_.forget_all(s);
  views_.drop_waiters(s);
  answers_.batches().forget_session(s.handle);
  views_.leave(s);
  if (s.is_sessionless()) --sessionless_count_;
  sessions_.erase(s.handle);
}

bh_status Router::check_revision(bh_session, std::string_view revision) const {
  return find_revision(revision).has_value() ? BH_OK : BH_E_INVALID;
}

// ---- time ------------------------------------------------------------------------------------

void Router::timed_out(Exchange &e) {
  if (e.purpose == Purpose::call) return calls_.timed_out(e);
  ++counters_.timeouts;
  Lane *lane = e.lane;
  const std::uint64_t own = e.id;
  const Error error{BH_E_TIMEOUT, "server \"" + lane->upstream().name() + "\" did not answer " +
                                      std::string(mcp::to_string(e.method)) +
                                      (e.name.empty() ? "" : " \"" + e.name + "\"") + " within " +
                                      std::to_string(e.timeout_ms) + " ms"};
  lane->abandon(own);  // a connector may lose the connection inside
  Exchange *still = exchanges_.get(own);
  if (still == nullptr) return;
  if (lane->upstream().tools != nullptr) return drop(*still);
  static_cast<WireLane *>(lane)->own_answer(*still, nullptr, {}, &error);
}

// ---- state -----------------------------------------------------------------------------------

bool Router::idle() const {
  bool idle = owed_.empty() && !answers_.any_held();
  sessions_.for_each([&](const Session &s) {
    if (!s.input_ended || s.exchanges.size != 0) idle = false;
  });
  return idle && !views_.anybody_waits();
}

bool Router::busy() const {
  bool busy = false;
  sessions_.for_each(
      [&](const Session &s) { busy = busy || s.exchanges.size > desk_.waiting_of(s.handle); });
  return busy;
}

void Router::end_calls() {
  std::vector<std::uint64_t> ids;
  sessions_.for_each([&](const Session &s) {
    for (const Exchange *e = s.exchanges.head; e != nullptr; e = e->session_next) {
      ids.push_back(e->id);
    }
  });
  for (const std::uint64_t id : ids) {
    Exchange *e = exchanges_.get(id);
    if (e == nullptr) continue;
    const std::string server = e->lane != nullptr ? e->lane->upstream().name() : std::string();
    calls_.fail_and_retract(
        *e, code::internal_error,
        "the gateway is stopping; " + (e->sent && e->lane != nullptr
                                           ? "server \"" + server + "\" may have run this"
                                           : "this has not run"),
        BH_OUTCOME_CANCELLED);
  }
}

void Router::check_idle() {
  if (hooks_.on_idle) hooks_.on_idle();
}

// Many lanes change within one turn at start; one call is enough.
void Router::status_changed() {
  if (!hooks_.on_status || status_pending_) return;
  status_pending_ = true;
  reactor_.defer(
      this,
      [](void *arg) {
        auto &self = *static_cast<Router *>(arg);
        self.status_pending_ = false;
        self.hooks_.on_status();
      },
      this);
}

void Router::lane_closed(bh_lane lane) {
  if (wires_.closed(lane)) return check_idle();
  log(BH_LOG_PLUGIN_MISBEHAVES, "a connector closed a lane that nobody asked it to close");
}

bh_status Router::list_items(bh_session handle, const ClientEnd *end, ItemKind kind,
                             std::string *out) {
  const Session *s = session(handle);
  if (s == nullptr || s->end != end) return BH_STALE;
  return s->view == nullptr ? BH_E_UNAVAILABLE : lists_.items(*s, kind, out);
}

}  // namespace bulkhead
