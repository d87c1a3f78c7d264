// The data that is needed to send a call again: after a server of revision 2026-07-28 has asked for
// input, after a tool's headers have changed, or for the next request about a task; see InputRounds
// and TaskRounds.
//
// Owner: the call. Used on the reactor thread.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "route/input_round.hpp"
#include "route/protocol.hpp"
#include "route/target.hpp"

namespace bulkhead {

struct CallInput {
  ParkedCall request;       // as the lane received it
  ClientCaps declared = 0;  // by the gateway, in this request
  std::uint32_t rounds = 0;
  bool headers_renewed = false;  // the call was sent again because its headers were out of date
  // The highest progress that was forwarded to the client.
  double progress = -std::numeric_limits<double>::infinity();
  InputRound round;
  std::string members;  // to add to the params when it is sent again: empty, or ends with a comma
  std::string failure;  // why the call cannot continue; empty if it can

  // Returns true if the client has answered every request or the call cannot continue.
  bool settled() const noexcept { return !failure.empty() || round.complete(); }
};

}  // namespace bulkhead
