// Manages the views: assigns clients to views, merges the lists of their lanes, notifies clients of
// changed lists, and parks requests until servers have sent their first lists.
//
// Owner: the Router. Runs on the reactor thread. Limits: limits.first_list_wait_ms;
// limits.idle_view_ms. Parked requests are limited to max_waiters and limits.message_bytes per
// view, and to limits.in_flight_per_session per session.
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
#include "route/view_table.hpp"

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
    // Handles a request that was parked. When this function returns, any session may have ended.
    std::function<void(Session &session, Incoming &request)> handle_again;
    // Called when the view's lists are complete or have changed, so that the state of restored
    // clients can be set up.
    std::function<void(View &view)> on_lists;
    // Called before the lane is closed. Fails the calls that have not been sent to the lane yet.
    std::function<void(Lane &lane)> on_lane_goes;
    std::function<void()> on_status;
    std::function<void()> on_idle;  // called when parked requests have been handled
  };
  explicit Views(Needs needs) : needs_(std::move(needs)) {}
  ~Views();
  Views(const Views &) = delete;
  Views &operator=(const Views &) = delete;

  // ---- clients ----
  // Adds the session to the view for its capabilities. If there is no such view, creates it and
  // starts its lanes.
  View &join(Session &session);
  // Removes the session from its view. A view that other clients may use is kept without clients
  // for limits.idle_view_ms. The view of a single session is destroyed immediately.
  void leave(Session &session);
  // Removes the views for these shareable capabilities, and their lanes, as soon as they have no
  // clients.
  void retire(ClientCaps caps);
  // Removes the views of a connection that has ended, as soon as they have no clients. `scope` is
  // the connection's key for its sessionless requests; see RequestScopes.
  void end_scope(std::uint64_t scope);
  // Creates and starts the view for clients without capabilities. Called before the first client
  // has connected.
  void start_pinned();
  // Destroys all views but keeps the lanes. Must be called after all sessions have ended; no client
  // may join afterwards.
  void end_all();

  // ---- lists ----
  // Returns the unfiltered catalogue, with which names are resolved.
  const Catalogue &catalogue(View &view);
  // Returns the catalogue that the session's principal may see, or null if the policy has not yet
  // decided on all of its items.
  const Catalogue *listed_to(View &view, const Session &session);
  // Returns true if all lanes of the view have settled (see is_settled()), or if
  // limits.first_list_wait_ms has expired.
  static bool is_ready(const View &view) { return view.deadline_passed || is_settled(view); }
  // Returns true if clients of a view may see different lists.
  bool is_filtered() const noexcept { return needs_.filters.any(); }
  // Records that a client has received a list. From then on, the view's clients are notified of
  // changes.
  void mark_shown(View &view);
  bool all_settled() const;
  // Returns a message for each name that several servers offer in the first view. Servers whose
  // lists are unknown are not considered.
  std::vector<std::string> collisions();

  // ---- waiting for servers ----
  // Parks the request, or sends an error response if a limit is exceeded.
  void wait(View &view, Incoming &request);
  // Removes the parked request with this ID, because the client has cancelled it, and returns the
  // request's reply address. Returns nullopt if no such request is parked.
  std::optional<ReplyTo> cancel_waiting(Session &session, std::string_view id);
  // Discards the parked requests of a client that has disconnected.
  void drop_waiters(Session &session);
  // Removes and returns the parked requests of a session that moves to another view.
  static std::vector<View::Waiter> take_waiters(Session &session);
  void put_waiters(View &view, std::vector<View::Waiter> waiters);
  bool anybody_waits() const;
  // Handles all parked requests of the view.
  void serve(View &view);
  void serve_ready();

  // ---- lazy servers ----
  // Starts the lazy servers whose lists are unknown and that are not running. Called when a client
  // requests a list.
  void wake_unlisted(View &view);
  // Starts the lazy servers that may offer this name. Called when a client uses a name that is not
  // listed.
  void wake_holders(View &view, ItemKind kind, std::string_view name);
  // Returns true if a server that may offer this name is still connecting and its stored list is
  // shown in the meantime. The request should then wait once, up to limits.first_list_wait_ms, for
  // the server's actual list.
  bool awaits_holder(View &view, ItemKind kind, std::string_view name, const Incoming &request);

  // ---- lane events ----
  void lane_changed(Lane &lane);
  void items_changed(Lane &lane);
  // Sets the server's log level to the most verbose level that any client of the lane has
  // requested. The server's log messages are then filtered for each client.
  static void update_log_level(Lane &lane);

  // ---- hot reload ----
  void names_changed();
  void rules_changed();
  // Removes the servers in `gone` from all views, then adds and starts the new servers. Calls
  // move() after all new lanes have been created but before any of them is started.
  template <class Move>
  void exchange(const Upstreams::List &gone, const Move &move);

  // ---- notifications ----
  // Notifies the client of a changed list if the client has received this list before or, for
  // subscriptions/listen, has subscribed to its changes.
  void tell_list_changed(const Session &session, ItemKind kind);
  // Calls f(View &) for each view. f may destroy other views.
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
  static void update_log_levels(const Session &session, const View &view);
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
  ViewTable views_;
  std::uint64_t idle_timer_ = 0;
  bool ending_ = false;
};

template <class Move>
void Views::exchange(const Upstreams::List &gone, const Move &move) {
  for (const auto &upstream : gone) take_out(*upstream);
  split_shared();
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
