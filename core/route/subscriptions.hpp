// Manages resource subscriptions. If several clients of a lane subscribe to the same resource, the
// server receives only the first subscribe request and the last unsubscribe request. There is one
// exception: until the server has accepted a subscribe request, the requests of all clients are
// forwarded. Otherwise, a client could rely on a subscription that the server then rejects or that
// another client cancels.
//
// A watch is a lane's subscription to a resource, identified by the server's URI. A client may use
// different forms of the URI; notifications contain the form that it used last.
//
// Owner: the Router. Runs on the reactor thread. Limit: limits.subscriptions_per_session.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/names.hpp"
#include "profile/profile.hpp"
#include "route/call.hpp"
#include "route/lane.hpp"
#include "route/message.hpp"
#include "route/notifications.hpp"
#include "route/sessions.hpp"

namespace bulkhead {

class Subscriptions {
 public:
  struct Needs {
    Sessions &sessions;
    CallTable &calls;
    JudgedEvents &events;
    Notifications &notifications;
    const Names &names;
    const Limits &limits;
    // Called when the session's subscriptions have changed, so that the session journal can store
    // them.
    std::function<void(const Session &session)> on_changed;
    std::function<void(const Lane &lane, mcp::Method method)> on_lost;
  };
  explicit Subscriptions(Needs needs) : needs_(std::move(needs)) {}

  // The reason why a subscribe or unsubscribe request is refused. error_code is 0 if the request is
  // allowed.
  struct Refusal {
    std::int32_t error_code = 0;
    std::string text;
  };
  Refusal refusal(const Session &session, const Lane &lane, mcp::Method method) const;

  // Starts a subscribe or unsubscribe call that the policy has allowed. `token` is the URI exactly
  // as the client wrote it. Returns true if the gateway itself responds (with {}), or false if the
  // call must be sent to the server.
  bool begin(Call &call, Lane &lane, const std::string &token);
  // Called when a subscribe call has finished. Requires call.watches. Returns true if the server
  // may have accepted a subscription that no client needs. In this case, the caller must call
  // unsubscribe() after the call has been freed.
  bool ended(Call &call, std::uint32_t outcome);
  static void unsubscribe(Lane &lane, const std::string &uri);

  // Removes the session's subscription that was made with exactly this form of the URI, if any. If
  // no other client watches the resource, unsubscribes at the server.
  void forget(Session &session, const std::string &token);
  void forget_all(Session &session);
  // Removes all subscriptions of the lane. Called when the lane is closed.
  void forget_lane(Lane &lane);
  // Moves a subscription from its current lane to `to`, the lane that replaces it. The new lane
  // subscribes when it is ready. If `to` is null, the subscription is removed.
  void move(Session &session, const std::string &token, Lane *to);
  // Called when the lane's connection is ready. Subscribes again to every resource for which the
  // server had accepted a subscription. Subscribe requests that have not been sent yet are sent
  // by their calls.
  static void lane_ready(Lane &lane);

  // Handles a server's notification that a resource has changed.
  void updated(Lane &lane, const Message &message);

  // Called when the rules have changed. Evaluates the session's subscriptions again and removes any
  // that are no longer allowed.
  void judge_again(bh_session session);
  void refused(const JudgedEvent &event);

 private:
  bool subscribe(Call &call, Lane &lane, const std::string &token);
  void remove_watcher(Lane &lane, const std::string &uri, Session &session);
  void move_watcher(Lane &from, Lane &to, const std::string &uri, const Session &session);
  void add_watchers(const Lane &lane, const Lane::Watch &watch, std::string_view uri, bool part,
                    std::vector<std::pair<bh_session, std::string>> *out) const;
  std::vector<std::pair<bh_session, std::string>> watchers_of(const Lane &lane,
                                                              std::string_view uri) const;

  const Needs needs_;
};

}  // namespace bulkhead
