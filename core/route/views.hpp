// Which lanes a client sees, their merged catalogue, and telling clients when it changes; requests
// that wait for the servers' first answers. Owner: the Router. Thread: [io].
//
// Bounds: limits.first_list_wait_ms, limits.idle_view_ms; max_waiters requests of a view wait, of
// each session limits.in_flight_per_session, with limits.message_bytes all together.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/catalogue.hpp"
#include "catalog/names.hpp"
#include "profile/profile.hpp"
#include "reactor/reactor.hpp"
#include "route/client_answers.hpp"
#include "route/filtered_lists.hpp"
#include "route/lane.hpp"
#include "route/upstreams.hpp"
#include "route/view.hpp"

namespace bulkhead {

class Views {
 public:
  static constexpr std::size_t max_waiters = 1024;

  struct Needs {
    const Upstreams &upstreams;
    Sessions &sessions;
    const Names &names;
    const Profile &profile;
    Reactor &reactor;
    Recorder &recorder;
    ClientAnswers &answers;
    FilteredLists &filters;
    // A request that has waited, once more. It may end any session.
    std::function<void(Session &session, Incoming &request)> handle_again;
    // The view's lists are complete, or others: what restored clients had can be set up.
    std::function<void(View &view)> on_lists;
    // The lane is about to end: calls that would still go to it fail.
    std::function<void(Lane &lane)> on_lane_goes;
    std::function<void()> on_status;
    std::function<void()> on_idle;  // a request that waited has been handled
  };
  explicit Views(Needs needs) : needs_(std::move(needs)) {}
  ~Views();
  Views(const Views &) = delete;
  Views &operator=(const Views &) = delete;

  // ---- clients ----
  // Puts the session into the view for its capabilities, which is made and started if there is
  // none.
  View &join(Session &session);
  // A view without clients stays for limits.idle_view_ms, one of a single session goes at once.
  void leave(Session &session);
  // The view of clients without capabilities, before there is one.
  void start_pinned();
  // All views go at once; lanes stay. Nothing is to be asked of this afterwards.
  void end_all();

  // ---- lists ----
  // The whole list; names are resolved through it.
  const Catalogue &catalogue(View &view);
  // What the session's principal may see. Null: the policy has not said all of it yet.
  const Catalogue *listed_to(View &view, const Session &session);
  // The first answers of its servers are not awaited, or no longer.
  static bool is_ready(const View &view) { return view.deadline_passed || is_settled(view); }
  // A client has listed this; see announce().
  void mark_shown(View &view);
  bool all_settled() const;
  // Names that several servers have; as far as that is known.
  std::vector<std::string> collisions();

  // ---- waiting for servers ----
  void wait(View &view, Incoming &request);
  // The request of this id that waits, given up by its client. Nothing: there is none.
  std::optional<ReplyTo> cancel_waiting(Session &session, std::string_view id);
  // Its client has gone.
  void drop_waiters(Session &session);
  // For a session that changes its view: what it waits with.
  static std::vector<View::Waiter> take_waiters(Session &session);
  void put_waiters(View &view, std::vector<View::Waiter> waiters);
  bool anybody_waits() const;
  // Handles all that waits once more.
  void serve(View &view);
  // The same where nothing more can be expected.
  void serve_ready();

  // ---- lazy servers ----
  // Somebody asks what there is: servers whose lists are not known yet are started for it once.
  void wake_unlisted(View &view);
  // A name that no list has is called: only servers that may have it are started.
  void wake_holders(View &view, ItemKind kind, std::string_view name);
  // Such a server lists from memory while it connects: the name may be on the list that it gives
  // then. A request waits for that once, as long as a first list does.
  bool awaits_holder(View &view, ItemKind kind, std::string_view name, const Incoming &request);

  // ---- what happens to lanes ----
  void lane_changed(Lane &lane);
  void items_changed(Lane &lane);
  // Upstream, the most verbose level that any client of the lane wants; each client's own is
  // applied when messages come.
  static void update_log_level(Lane &lane);

  // ---- the profile has changed while running ----
  void names_changed();
  void rules_changed();
  // The servers are others: those of `gone` leave every view at once, new ones join and start.
  // In between, once all lanes are in their places, move() is called.
  template <class Move>
  void exchange(const Upstreams::List &gone, const Move &move);

  // ---- notifications ----
  // A client that never listed will see the present list when it does.
  void tell_list_changed(const Session &session, ItemKind kind);
  // f(View &) for each that is there now; f may end others.
  template <class F>
  void for_each(const F &f);

 private:
  void open_first_list(View &view);
  void close_first_list(View &view);
  void fill(View &view);
  void place_lanes(View &view);
  static void start_lanes(View &view);
  void wake(View &view, const std::vector<Lane *> &unlisted);
  bool may_hold(const Lane &lane, ItemKind kind, std::string_view name) const;
  void left(View &view);
  void drop(View &view);
  void remove_lane(Lane &lane);
  void start_idle_timer();
  void remove_idle_lanes();
  void take_out(const Upstream &upstream);
  void place_all();
  void start_all();
  void split_shared();
  View &split_off(Session &session);
  void changed(View &view);
  void announce_all();
  void announce(View &view);
  void record_cancelled(const View::Waiter &waiter, std::string_view why);

  const Needs needs_;
  std::vector<std::unique_ptr<View>> views_;
  std::uint64_t idle_timer_ = 0;
  bool ending_ = false;
};

template <class Move>
void Views::exchange(const Upstreams::List &gone, const Move &move) {
  for (const auto &upstream : gone) take_out(*upstream);
  if (needs_.upstreams.any_per_client()) split_shared();
  place_all();
  move();
  start_all();
}

template <class F>
void Views::for_each(const F &f) {
  std::vector<View *> now;
  for (const auto &view : views_) now.push_back(view.get());
  for (View *view : now) {
    const bool there = std::any_of(views_.begin(), views_.end(),
                                   [view](const auto &one) { return one.get() == view; });
    if (there) f(*view);
  }
}

}  // namespace bulkhead
