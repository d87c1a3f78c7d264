#include "route/router.hpp"

#include <sys/random.h>

#include <utility>

namespace bulkhead {
namespace {

std::uint64_t random_number(std::uint64_t otherwise) {
  std::uint64_t number = 0;
  return ::getrandom(&number, sizeof number, 0) == sizeof number ? number : otherwise;
}

// Replaces missing functions with functions that do nothing.
RouterHooks with_all(RouterHooks hooks) {
  if (!hooks.on_status) hooks.on_status = [] {};
  if (!hooks.on_idle) hooks.on_idle = [] {};
  if (!hooks.on_drained) hooks.on_drained = [] {};
  if (!hooks.on_unanswered) hooks.on_unanswered = [](std::uint64_t, bool) {};
  return hooks;
}

// Returns the callback for a message to or from a server that is dropped because it could not be
// rewritten.
auto on_lost(LaneLinks &lanes) {
  return [&lanes](const Lane &lane, mcp::Method method) { lanes.message_lost(lane, method); };
}

const std::vector<std::string> *static_roots(const Upstreams &upstreams, std::string_view server) {
  const Upstream *upstream = upstreams.find(server);
  const bool declared =
      upstream != nullptr && upstream->def().roots_mode() == RootsMode::static_list;
  return declared ? &upstream->def().root_folders : nullptr;
}

}  // namespace

Router::Router(const Profile &profile, Reactor &reactor, RouterHooks hooks)
    : hooks_(with_all(std::move(hooks))),
      status_(reactor, hooks_.on_status),
      names_(profile.naming),
      pins_(profile, hooks_.log, hooks_.on_pins),
      recorder_(reactor),
      seed_(random_number(reinterpret_cast<std::uintptr_t>(this) ^ reactor.now_ns())),
      states_(hooks_.sealing_key, hooks_.epoch),
      task_ids_(hooks_.sealing_key),
      task_answers_({task_ids_, reactor, profile.limits}),
      sessions_(random_generation(~seed_)),
      journal_(sessions_, reactor, profile.limits),
      answers_(sessions_, recorder_, reactor, profile.limits, counters_, hooks_.on_idle),
      loop_(call_table_, calls_),
      deadlines_(call_table_, exchanges_, reactor,
                 {[this](Call &call) { calls_.timed_out(call); },
                  [this](Exchange &exchange) { lanes_.timed_out(exchange); }}),
      attribution_(sessions_, exchanges_, reactor),
      waiting_bytes_(profile.limits),
      duplicate_checks_(reactor,
                        [this](std::uint64_t number, bool found) {
                          events_.has(number) ? events_.checked(number, found)
                                              : calls_.checked(number, found);
                        }),
      events_({gate_, sessions_, duplicate_checks_, waiting_bytes_, recorder_, counters_,
               profile.limits, reactor, hooks_.log, hooks_.on_unanswered, judged_messages_}),
      // The first generation is random, because a client may still answer asks from an earlier
      // process.
      asks_(random_generation(seed_),
            {gate_, attribution_, sessions_, call_table_, deadlines_, answers_, events_, counters_,
             profile.limits, reactor, on_lost(lanes_), calls_, &inputs_}),
      notifications_({gate_, attribution_, exchanges_, sessions_, answers_, events_, counters_,
                      on_lost(lanes_)}),
      subscriptions_({sessions_, call_table_, events_, notifications_, names_, profile.limits,
                      [this](const Session &s) { journal_.save(s); }, on_lost(lanes_)}),
      draining_(profile.limits, reactor, call_table_, reload_),
      filters_({gate_, pins_, names_, profile.limits, counters_, reactor, hooks_.log,
                hooks_.on_unanswered, [this](View &view) { views_.serve(view); },
                [this] { views_.serve_ready(); }}),
      views_({upstreams_, sessions_, names_, profile, reactor, recorder_, answers_, filters_,
              [this](Session &s, Incoming &request) { messages_.request(s, request); },
              [this](View &view) { restored_.lists_ready(view); },
              [this](Lane &lane) { reload_.lane_goes(lane); }, [this] { status_.ask(); },
              hooks_.on_idle}),
      judge_(gate_, pins_, recorder_, reactor),
      desk_({profile, reactor, recorder_, counters_, asks_, answers_, hooks_.on_approval,
             hooks_.approval_hint}),
      parking_(profile.limits, deadlines_, waiting_bytes_),
      ends_({reactor, call_table_, loop_, exchanges_, parking_, desk_, recorder_, answers_, asks_,
             attribution_, subscriptions_, draining_, hooks_.on_unanswered,
             [this](const CreatedTask &task) {
               if (WireLane *lane = wires_.find(task.lane)) lane->tasks().cancel(task.id);
             }}),
      rounds_({call_table_, loop_, parking_, deadlines_, asks_, ends_,
               [this](Call &call) { calls_.repeat(call); },
               [this](std::string_view server) { return static_roots(upstreams_, server); }}),
      task_rounds_({profile.limits, reactor, rounds_, ends_}),
      bridge_({reactor, gate_, ends_, rounds_, &states_, profile.limits.ask_timeout_ms,
               &task_answers_, &task_rounds_}),
      call_answers_({reactor, counters_, loop_, gate_, judge_, duplicate_checks_, parking_,
                     recorder_, answers_, asks_, ends_, bridge_, hooks_.on_unanswered,
                     hooks_.on_idle}),
      calls_({profile.limits,
              counters_,
              call_table_,
              loop_,
              exchanges_,
              deadlines_,
              gate_,
              judge_,
              duplicate_checks_,
              parking_,
              desk_,
              recorder_,
              answers_,
              subscriptions_,
              draining_,
              call_answers_,
              ends_,
              rounds_,
              hooks_.log,
              hooks_.on_unanswered}),
      inputs_({}, random_generation(seed_ >> 1),
              {profile.limits, reactor, sessions_, call_table_, answers_, asks_, ends_, states_,
               [this](Session &s, ClientEnd &end) { return clients_.hand_over(s, end); },
               [this](bh_session s) { clients_.close(s, BH_SESSION_GONE); }}),
      wires_({profile, counters_, exchanges_, call_answers_, asks_, notifications_, subscriptions_,
              hooks_.log, hooks_.on_idle}),
      tools_({reactor, exchanges_, call_answers_, ends_, answers_, gate_, notifications_,
              subscriptions_, recorder_, counters_, hooks_.log}),
      lanes_({profile.limits, reactor, counters_, exchanges_, deadlines_, calls_, call_answers_,
              ends_, wires_, tools_, asks_, subscriptions_, views_, pins_, hooks_.log, hooks_.mask,
              hooks_.on_list}),
      judged_messages_({[this](bh_lane lane) { return wires_.find(lane); }, asks_, call_table_,
                        answers_, subscriptions_}),
      lists_(seed_, {sessions_, views_, names_, profile, recorder_, answers_,
                     [this](const Session &s) { journal_.save(s); }}),
      targets_({upstreams_, views_, names_, gate_, answers_}),
      task_requests_({task_ids_, reactor, answers_}),
      requests_(
          {profile.expose, lists_, targets_, task_requests_, subscriptions_, calls_, answers_}),
      session_edge_({profile, counters_, answers_, requests_, views_, ends_, asks_, desk_,
                     notifications_, subscriptions_, journal_, reactor, on_lost(lanes_)}),
      listens_({profile, reactor, sessions_, recorder_, answers_, requests_, views_, subscriptions_,
                ends_}),
      stateless_edge_({profile, counters_, sessions_, answers_, requests_, views_, ends_, listens_,
                       inputs_, states_, reactor,
                       [this](Session &connection, const Incoming &request) {
                         return clients_.open_request(connection, request);
                       },
                       [this](Session &session, const Incoming &request) {
                         return clients_.count_request(session, request);
                       }}),
      messages_({profile, reactor, counters_, sessions_, call_table_, recorder_, journal_, answers_,
                 asks_, session_edge_}),
      restored_({profile, reactor, names_, sessions_, journal_, views_, answers_, recorder_,
                 [this](Session &s, Incoming &request) { messages_.request(s, request); },
                 [this](Session &s, ClientCaps caps) { return session_edge_.admit(s, caps); },
                 hooks_.on_idle}),
      clients_({profile.limits, reactor, sessions_, journal_, messages_, answers_, views_, calls_,
                loop_, ends_, asks_, desk_, subscriptions_, listens_, inputs_, recorder_,
                hooks_.log, hooks_.on_idle}),
      reload_({profile, names_, gate_, pins_, upstreams_, views_, sessions_, subscriptions_, calls_,
               call_answers_, ends_, call_table_, desk_, inputs_, draining_, journal_,
               [this] { status_.ask(); }, hooks_.on_drained}),
      parts_{{clients_, journal_, restored_, messages_, requests_, answers_, views_, lists_},
             {upstreams_, lanes_, wires_, tools_, draining_, reload_},
             {calls_, ends_, desk_, counters_},
             {gate_, pins_, filters_, events_, calls_},
             {recorder_, calls_, answers_}} {
  messages_.add(stateless_edge_);
}

void Router::use_ledger(Ledger *ledger) {
  journal_.use(ledger);
  answers_.use_ledger(ledger);
  if (ledger != nullptr) recorder_.use_ring(&ledger->records());
}

void Router::start(bool eager) {
  if (eager) views_.start_pinned();
}

void Router::close_lanes() {
  views_.end_all();
  for (const auto &upstream : upstreams_.all()) {
    while (!upstream->lanes().empty()) upstream->remove(upstream->lanes().back().get());
  }
  draining_.end_all();
}

bool Router::idle() const {
  bool idle = !restored_.owes() && !answers_.any_held();
  sessions_.for_each([&](const Session &s) {
    if (!s.input_ended || (s.open_calls.size != 0 && !s.parked)) idle = false;
  });
  return idle && !views_.anybody_waits();
}

// ---- events for several parts ------------------------------------------------------------------

void PolicyParts::decided(std::uint64_t number, const Gate::Decision &decision) const {
  if (events.has(number)) return events.decided(number, decision);
  calls.decided(number, decision);
}

void RecordParts::committed() const {
  calls.records_committed();
  answers.records_committed();
}

}  // namespace bulkhead
