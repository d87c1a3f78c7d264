// Resource subscriptions. Several clients of a lane may watch the same resource; the server
// receives only the first subscribe and the last unsubscribe request. Until the server has accepted
// a subscription, the request of each client is forwarded, so no client relies on a subscription
// that was refused or that another client cancelled.
//
// A watch is identified by (lane, the server's own URI). A client may use several forms of the URI;
// notifications contain the form that it used last.
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
    // Called when the session's subscriptions have changed, so the journal can be updated.
    std::function<void(const Session &session)> on_changed;
    std::function<void(const Lane &lane, mcp::Method method)> on_lost;
  };
  explicit Subscriptions(Needs needs) : needs_(std::move(needs)) {}

  // The reason why the session cannot subscribe or unsubscribe at this lane. error_code is 0 if the
  // session can.
  struct Refusal {
    std::int32_t error_code = 0;
    std::string text;
  };
  Refusal refusal(const Session &session, const Lane &lane, mcp::Method method) const;

  // Starts a call that the policy has allowed. `token` is the URI as the client wrote it. Returns
  // true if the gateway itself answers the call with {}, and false if the call is sent to the
  // server.
  bool begin(Call &call, Lane &lane, const std::string &token);
  // Called when a client's subscribe request has ended. Returns true if the server may have
  // accepted a subscription that no client needs. In that case, unsubscribe() must be called after
  // the call has been freed.
  bool ended(Call &call, std::uint32_t outcome);
  static void unsubscribe(Lane &lane, const std::string &uri);

  // Removes the subscription with this form of the URI, if any.
  void forget(Session &session, const std::string &token);
  void forget_all(Session &session);
  // Called when the lane ends.
  void forget_lane(Lane &lane);
  // Moves a subscription to the lane that replaces its lane. The replacement subscribes when it is
  // ready. If `to` is null, the subscription ends.
  void move(Session &session, const std::string &token, Lane *to);
  // Called when one of the lane's connections is ready. Subscribes again to accepted watches.
  // Requests that the server has not answered are retried by their calls.
  static void lane_ready(Lane &lane);

  // Called when a server reports that a resource has changed.
  void updated(Lane &lane, const Message &message);

  // Called when the rules have changed. Ends the subscriptions that the new rules refuse.
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
