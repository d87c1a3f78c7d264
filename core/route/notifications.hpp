// Forwards notifications between servers and clients. If the policy evaluates notifications, each
// one is parked until the policy has decided on it.
//
// Owner: the Router. Runs on the reactor thread.
#pragma once

#include <cstdint>
#include <functional>

#include "route/attribution.hpp"
#include "route/client_answers.hpp"
#include "route/judged_events.hpp"
#include "route/lane.hpp"
#include "route/message.hpp"

namespace bulkhead {

class Notifications {
 public:
  struct Needs {
    const Gate &gate;
    Attribution &attribution;
    ExchangeTable &exchanges;
    Sessions &sessions;
    ClientAnswers &answers;
    JudgedEvents &events;
    RouterCounters &counters;
    // Called when a message from or to this server was dropped because the gateway could not
    // rewrite it.
    std::function<void(const Lane &lane, mcp::Method method)> on_lost;
  };
  explicit Notifications(Needs needs) : needs_(std::move(needs)) {}

  // ---- from servers; `hint` is the exchange of the message's stream, or 0 if unknown ----
  void progress(Lane &lane, const Message &message);
  // Sends a log message to the client for which the server is working, if the client's log level
  // admits it. If that client is unknown, sends the message to all clients with a session that
  // have set a log level that admits it.
  void log_line(Lane &lane, std::uint64_t hint, const Message &message);
  // Sends any other notification (elicitation/complete or an unknown one) to the client for which
  // the server is working. Sessionless requests do not receive these notifications, because their
  // protocol revision does not define them.
  void other(Lane &lane, std::uint64_t hint, const Message &message);

  // Sends `parts`, the rewritten notification, to a client. `message` is the notification as the
  // server sent it. `call` is the call that caused it, or null if that call is unknown.
  void to_client(const ReplyTo &to, const Lane &lane, const Call *call, const Message &message,
                 const bh_str *parts, std::uint32_t count);
  void to_server(Lane &lane, const Session &session, const Message &message, const bh_str *parts,
                 std::uint32_t count);

 private:
  void log_line_of_nobody(Lane &lane, int level, const Message &message);

  const Needs needs_;
};

}  // namespace bulkhead
