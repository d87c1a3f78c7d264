// Lists that a policy filters: one question per item, asked once per principal and list. Requests
// for a list whose answers are not all there wait with those that wait for servers (View::waiters).
#include <string>
#include <utility>

#include "bulkhead/cpp/basics.hpp"
#include "route/router.hpp"

namespace bulkhead {
namespace {

// A question's number: it must be none of an exchange, which has 50 bits.
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

// With a filtering policy the list is the principal's; names still resolve through the whole one,
// since decide() judges calls.
const Catalogue *Router::list_catalogue(View &view, const Session &s) {
  if (!gate_.filters() && !pins_.enforces()) return &catalogue(view);
  FilteredList &list = view.filtered[s.principal];
  list.view = &view;
  if (list.catalogue == nullptr && list.round == 0 && !ask_filter(view, list, s)) return nullptr;
  return list.catalogue.get();
}

// False: not everything was answered at once.
bool Router::ask_filter(View &view, FilteredList &list, const Session &s) {
  do {
    list.round = last_round_ = last_round_ % max_round + 1;
  } while (filter_rounds_.contains(list.round));
  list.shown.clear();
  list.open = 0;
  const auto keep = [&](ItemKind kind, std::uint32_t source, std::string_view token,
                        std::string_view raw) {
    std::string scratch;
    const Upstream &upstream = view.lanes[source]->upstream();
    const std::string_view name = mcp::unquote(token, &scratch);
    const std::uint32_t pin = pin_of(upstream, kind, name, raw);
    const bool hidden = pins_.enforces() && kind == ItemKind::tool && pin != BH_PIN_SAME;
    if (hidden || !gate_.filters()) {
      list.shown.push_back(hidden ? 0 : 1);
      return !hidden;
    }
    bh_policy_request request{};
    request.size = sizeof request;
    request.exchange = question_number(list.round, list.shown.size());
    request.session = s.handle;
    request.transport = bh::str(s.transport);
    request.peer = bh::str(s.address);
    request.principal = bh::str(s.principal);
    request.process_name = bh::str(s.process_name);
    request.method = bh::str(method_of(kind));
    request.server = bh::str(upstream.name());
    request.name = bh::str(name);
    if (gate_.reads_definitions()) request.definition = bh::str(raw);
    request.session_calls = s.calls;
    request.session_age_ns = reactor_.now_ns() - s.start_ns;
    request.pin = pin;
    const Gate::Shown shown = gate_.shows(request);
    list.shown.push_back(shown == Gate::Shown::pending ? -1 : shown == Gate::Shown::yes ? 1 : 0);
    if (shown == Gate::Shown::pending) ++list.open;
    return shown == Gate::Shown::yes;
  };
  auto whole = build_catalogue(view, keep);
  if (list.open == 0) {
    list.catalogue = std::move(whole);
    list.round = 0;
    reactor_.timer_cancel(std::exchange(list.timer, 0));
    return true;
  }
  filter_rounds_[list.round] = &list;
  if (list.timer != 0) return false;
  list.timer = reactor_.timer_start(
      this, limits().policy_timeout_ms,
      [](void *arg) {
        auto &late = *static_cast<FilteredList *>(arg);
        late.timer = 0;
        late.view->router->filter_timed_out(late);
      },
      &list);
  return false;
}

void Router::policy_filtered(std::uint64_t question, bool listed) {
  const auto round = static_cast<std::uint32_t>((question & ~question_mark) >> 32);
  const auto item = static_cast<std::uint32_t>(question);
  const auto at = filter_rounds_.find(round);
  if ((question & question_mark) == 0 || at == filter_rounds_.end()) return;
  FilteredList &list = *at->second;
  if (item >= list.shown.size() || list.shown[item] >= 0) return;
  list.shown[item] = listed ? 1 : 0;
  if (--list.open != 0) return;
  reactor_.timer_cancel(std::exchange(list.timer, 0));
  build_filtered(*list.view, list);
  serve_waiters(*list.view);
}

// From the answers of the round that ends.
void Router::build_filtered(const View &view, FilteredList &list) {
  std::size_t item = 0;
  list.catalogue = build_catalogue(view, [&](ItemKind, std::uint32_t, std::string_view,
                                             std::string_view) { return list.shown[item++] == 1; });
  filter_rounds_.erase(std::exchange(list.round, 0));
  list.shown = {};
}

// What was not answered is hidden, in the answers to those who wait.
void Router::filter_timed_out(FilteredList &list) {
  View &view = *list.view;
  if (list.round != 0) {
    counters_.policy_timeouts += list.open;
    log(BH_LOG_WARN, "the policy has not said about " + std::to_string(list.open) +
                         " listed items whether they are to be seen: they are hidden");
    for (std::size_t item = 0; item < list.shown.size(); ++item) {
      if (list.shown[item] < 0) unanswered(question_number(list.round, item), true);
    }
    build_filtered(view, list);
    list.late = true;
  }
  serve_waiters(view);
  for (auto &[principal, each] : view.filtered) {  // the list may be another by now
    if (!std::exchange(each.late, false)) continue;
    each.catalogue = nullptr;
    ++view.version;  // the next one has other items at the places of its cursors
  }
}

// The items or the rules are others now. Who waits goes on waiting, for new answers and until the
// same moment.
void Router::forget_filters(View &view) {
  for (auto at = view.filtered.begin(); at != view.filtered.end();) {
    FilteredList &list = at->second;
    list.catalogue = nullptr;
    list.late = false;
    if (list.round != 0) {
      end_round(list);
      filter_again_later();
    }
    at = list.timer == 0 ? view.filtered.erase(at) : std::next(at);
  }
}

void Router::filter_again_later() {
  if (filter_again_pending_) return;
  filter_again_pending_ = true;
  reactor_.defer(
      this,
      [](void *arg) {
        auto &self = *static_cast<Router *>(arg);
        self.filter_again_pending_ = false;
        for (std::size_t i = 0; i < self.views_.size(); ++i) {
          View &view = *self.views_[i];
          if (view.deadline_passed || self.view_settled(view)) self.serve_waiters(view);
        }
      },
      this);
}

void Router::end_filters(View &view) {
  for (auto &[principal, list] : view.filtered) {
    reactor_.timer_cancel(list.timer);
    if (list.round != 0) end_round(list);
  }
  view.filtered.clear();
}

// Before all of it is answered: nobody waits for the rest any more.
void Router::end_round(FilteredList &list) {
  const std::uint32_t round = std::exchange(list.round, 0);
  filter_rounds_.erase(round);
  for (std::size_t item = 0; item < list.shown.size(); ++item) {
    if (list.shown[item] < 0) unanswered(question_number(round, item), false);
  }
  list.shown = {};
}

void Router::policy_changed() {
  std::vector<Session *> clients;
  for (const auto &view : views_) {
    forget_filters(*view);
    ++view->version;
    clients.insert(clients.end(), view->clients.begin(), view->clients.end());
  }
  if (gate_.decides()) {
    std::vector<bh_session> watching;
    sessions_.for_each([&](const Session &s) {
      if (!s.subscriptions.empty()) watching.push_back(s.handle);
    });
    for (const bh_session handle : watching) subscriptions_.judge_again(handle);
  }
  if (!profile_.expose.list_changed) return;
  // Now: a client may do anything while it is told, but end its session.
  for (Session *s : clients) {
    for (const ItemKind kind : all_item_kinds) {
      if (kind != ItemKind::resource_template) tell_list_changed(*s, kind);
    }
  }
}

}  // namespace bulkhead
