// Resource subscriptions: several clients of a lane may watch one resource, and the server hears of
// the first and the last. Until it has agreed once, each client's own request goes to it, so that
// no client relies on a subscription that was refused, or cancelled by another client.
//
// A watch is known by (lane, the server's own URI). A client may spell it in several ways; it is
// told of changes under the spelling that it used last.
//
// Owner: the Router. Thread: [io]. Bounds: limits.subscriptions_per_session.
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
    // The session's subscriptions have changed: the journal is to be updated.
    std::function<void(const Session &session)> on_changed;
    std::function<void(const Lane &lane, mcp::Method method)> on_lost;
  };
  explicit Subscriptions(Needs needs) : needs_(std::move(needs)) {}

  // Why this session cannot (un)subscribe at this lane; empty: it can.
  struct Refusal {
    std::int32_t error_code = 0;
    std::string text;
  };
  Refusal refusal(const Session &session, const Lane &lane, mcp::Method method) const;

  // A call that was let pass. `token`: the client's spelling of the URI, as it wrote it. True: it
  // is answered with {} here; false: it goes to the server.
  bool begin(Call &call, Lane &lane, const std::string &token);
  // The request of a client that watches has come to an end, with the server's word or otherwise.
  // What the server has refused needs no unsubscribing; what it may have agreed to does: true, and
  // unsubscribe() is to be called once the call was freed.
  bool ended(Call &call, std::uint32_t outcome);
  static void unsubscribe(Lane &lane, const std::string &uri);

  // The client's spelling; does nothing if there is none.
  void forget(Session &session, const std::string &token);
  void forget_all(Session &session);
  // The lane ends.
  void forget_lane(Lane &lane);
  // To the lane that takes the place of one that goes; without one (null) it ends with it. The new
  // one subscribes when it is ready, whether the old one's server has answered yet or not.
  void move(Session &session, const std::string &token, Lane *to);
  // A (new) connection of the lane is ready: what clients watch is asked for again. Requests that
  // the server has not answered yet are on their way themselves.
  static void lane_ready(Lane &lane);

  // A server reports that a resource has changed.
  void updated(Lane &lane, const Message &message);

  // The rules have changed: subscriptions that they would refuse end.
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
