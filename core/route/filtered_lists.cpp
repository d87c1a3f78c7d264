#include "route/filtered_lists.hpp"

#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/lane.hpp"
#include "route/policy_request.hpp"
#include "route/upstream.hpp"

namespace bulkhead {
namespace {

// This bit is set in the numbers of policy requests about list items. Policy requests about calls
// have the numbers of the calls, which have at most 50 bits. JudgedEvents also sets this bit, but
// its numbers contain the round 0, which is never used here.
constexpr std::uint64_t question_mark = 1ULL << 63;
constexpr std::uint32_t max_round = (1u << 18) - 1;

std::uint64_t question_number(std::uint32_t round, std::size_t item) {
  return question_mark | (std::uint64_t{round} << 32) | item;
}

const char *method_of(ItemKind kind) {
  return kind == ItemKind::tool ? "tools/call"
                                : (kind == ItemKind::prompt ? "prompts/get" : "resources/read");
}

}  // namespace

FilteredLists::FilteredLists(Needs needs) : needs_(std::move(needs)) {}

FilteredLists::~FilteredLists() {
  needs_.reactor.forget(this);
}

const Catalogue *FilteredLists::of(View &view, const Session &s) {
  FilteredList &list = view.filtered[s.principal];
  list.view = &view;
  list.owner = this;
  if (list.catalogue == nullptr && list.round == 0 && !ask(view, list, s)) return nullptr;
  return list.catalogue.get();
}

std::uint32_t FilteredLists::new_round() {
  do {
    last_round_ = last_round_ % max_round + 1;
  } while (rounds_.contains(last_round_));
  return last_round_;
}

// Asks the policy about all items. Returns false if the policy has not yet decided on all of them.
bool FilteredLists::ask(View &view, FilteredList &list, const Session &s) {
  list.round = new_round();
  list.shown.clear();
  list.open = 0;
  const auto keep = [&](ItemKind kind, std::uint32_t source, std::string_view token,
                        std::string_view definition) {
    std::string scratch;
    return shows(list, s, kind, *view.lanes[source], mcp::unquote(token, &scratch), definition);
  };
  auto whole = build_catalogue(view, needs_.names, keep);
  if (list.open != 0) {
    rounds_[list.round] = &list;
    if (list.timer == 0) start_timer(list);
    return false;
  }
  list.catalogue = std::move(whole);
  list.round = 0;
  needs_.reactor.timer_cancel(std::exchange(list.timer, 0));
  return true;
}

// Asks the policy about one item. Returns true if the item is shown, and false if it is hidden or
// undecided.
bool FilteredLists::shows(FilteredList &list, const Session &s, ItemKind kind, const Lane &lane,
                          std::string_view name, std::string_view definition) {
  const std::uint32_t pin = needs_.pins.state(lane, kind, name, definition);
  const bool hidden = needs_.pins.enforces() && kind == ItemKind::tool && pin != BH_PIN_SAME;
  if (hidden || !needs_.gate.filters()) {
    list.shown.push_back(hidden ? 0 : 1);
    return !hidden;
  }
  bh_policy_request request = policy_request_of(s, needs_.reactor.now_ns());
  request.exchange = question_number(list.round, list.shown.size());
  request.method = bh::str(method_of(kind));
  request.server = bh::str(lane.upstream().name());
  request.name = bh::str(name);
  if (needs_.gate.reads_definitions()) request.definition = bh::str(definition);
  request.pin = pin;
  std::string failure;
  const Gate::Shown shown = needs_.gate.shows(request, &failure);
  if (!failure.empty()) {
    policy_failed("\"" + std::string(name) + "\" of server \"" + lane.upstream().name() + "\"",
                  failure);
  }
  list.shown.push_back(shown == Gate::Shown::pending ? -1 : shown == Gate::Shown::yes ? 1 : 0);
  if (shown == Gate::Shown::pending) ++list.open;
  return shown == Gate::Shown::yes;
}

void FilteredLists::policy_failed(const std::string &item, const std::string &why) {
  if (!failures_.may_log(needs_.reactor.now_ns())) return;
  needs_.log(BH_LOG_WARN, "the policy could not decide whether " + item +
                              " is listed, so it is not listed: " + why);
}

void FilteredLists::start_timer(FilteredList &list) {
  list.timer = needs_.reactor.timer_start(this, needs_.limits.policy_timeout_ms,
                                          bh::callback(&list, [](FilteredList &late) {
                                            late.timer = 0;
                                            late.owner->timed_out(late);
                                          }));
}

void FilteredLists::answered(std::uint64_t question, bool listed) {
  const auto round = static_cast<std::uint32_t>((question & ~question_mark) >> 32);
  const auto item = static_cast<std::uint32_t>(question);
  const auto at = rounds_.find(round);
  if ((question & question_mark) == 0 || at == rounds_.end()) return;
  FilteredList &list = *at->second;
  if (item >= list.shown.size() || list.shown[item] >= 0) return;
  list.shown[item] = listed ? 1 : 0;
  if (--list.open != 0) return;
  needs_.reactor.timer_cancel(std::exchange(list.timer, 0));
  build(*list.view, list);
  needs_.on_ready(*list.view);
}

// Builds the catalogue from the decisions of the current round and finishes the round.
void FilteredLists::build(const View &view, FilteredList &list) {
  std::size_t item = 0;
  const auto keep = [&](ItemKind, std::uint32_t, std::string_view, std::string_view) {
    return list.shown[item++] == 1;
  };
  list.catalogue = build_catalogue(view, needs_.names, keep);
  rounds_.erase(std::exchange(list.round, 0));
  list.shown = {};
}

// Called when the policy has not decided in time. Builds the list from the items that have been
// allowed so far, responds to the pending requests, and discards the list.
void FilteredLists::timed_out(FilteredList &list) {
  View &view = *list.view;
  if (list.round != 0) {
    needs_.counters.policy_timeouts += list.open;
    needs_.log(BH_LOG_WARN, "the policy did not decide on " + std::to_string(list.open) +
                                " listed items: they are hidden");
    for (std::size_t item = 0; item < list.shown.size(); ++item) {
      if (list.shown[item] < 0) needs_.on_unanswered(question_number(list.round, item), true);
    }
    build(view, list);
    list.late = true;
  }
  needs_.on_ready(view);
  for (auto &[principal, each] : view.filtered) {  // `list` may have been destroyed
    if (!std::exchange(each.late, false)) continue;
    each.catalogue = nullptr;
  }
}

void FilteredLists::forget(View &view) {
  for (auto at = view.filtered.begin(); at != view.filtered.end();) {
    FilteredList &list = at->second;
    list.catalogue = nullptr;
    list.late = false;
    if (list.round != 0) {
      end_round(list);
      again_later();
    }
    at = list.timer == 0 ? view.filtered.erase(at) : std::next(at);
  }
}

void FilteredLists::again_later() {
  if (std::exchange(again_pending_, true)) return;
  needs_.reactor.defer(this, bh::callback(this, [](FilteredLists &self) {
                         self.again_pending_ = false;
                         self.needs_.on_again();
                       }));
}

void FilteredLists::end(View &view) {
  for (auto &[principal, list] : view.filtered) {
    needs_.reactor.timer_cancel(list.timer);
    if (list.round != 0) end_round(list);
  }
  view.filtered.clear();
}

// Cancels the current round. Its pending policy decisions are no longer needed.
void FilteredLists::end_round(FilteredList &list) {
  const std::uint32_t round = std::exchange(list.round, 0);
  rounds_.erase(round);
  for (std::size_t item = 0; item < list.shown.size(); ++item) {
    if (list.shown[item] < 0) needs_.on_unanswered(question_number(round, item), false);
  }
  list.shown = {};
}

}  // namespace bulkhead
