// Notifications on their way between servers and clients. Where the policy judges them, each waits
// for it by itself. Owner: the Router. Thread: [io].
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
    // A message of this server, or to it, could not be rewritten and goes nowhere.
    std::function<void(const Lane &lane, mcp::Method method)> on_lost;
  };
  explicit Notifications(Needs needs) : needs_(std::move(needs)) {}

  // ---- of servers; hint: the exchange on whose stream it came, 0: the wire does not say ----
  void progress(Lane &lane, const Message &message);
  // To the client whose call it belongs to, at the level that this one has set; a line that
  // belongs to no call to all clients that have asked for logs.
  void log_line(Lane &lane, std::uint64_t hint, const Message &message);
  // What has no rule of its own (elicitation/complete, unknown ones) goes to the client that the
  // lane works for.
  void other(Lane &lane, std::uint64_t hint, const Message &message);

  // The parts, to that client. `message`: as the server sent it. `call`: that it belongs to; null:
  // none, or the wire does not say.
  void to_client(const ReplyTo &to, const Lane &lane, const Call *call, const Message &message,
                 const bh_str *parts, std::uint32_t count);
  void to_server(Lane &lane, const Session &session, const Message &message, const bh_str *parts,
                 std::uint32_t count);

 private:
  void log_line_of_nobody(Lane &lane, int level, const Message &message);

  const Needs needs_;
};

}  // namespace bulkhead
