// Handles results in which servers of revision 2026-07-28 ask for input, for clients with a session
// and, if the rules evaluate input requests, for other clients as well. Each request in an
// input_required result is sent to the call's client as a request (see Asks), on the call's stream.
// If the profile declares the server's roots, the gateway answers roots/list itself. When all
// requests have been answered, the same call is sent again with the answers and the server's state.
// The call is decided, counted, approved and recorded only once, but the rules are evaluated again
// if they have changed.
//
// If a result contains no requests, the call is sent again after a pause. If the client refuses
// sampling or roots, the call ends, because the revision has no answer for such a refusal.
//
// Owner: the Router. Runs on the reactor thread. Limits: max_rounds for each call, those of
// InputRound for each round, max_waiting_bytes for all calls that wait (their messages, the
// requests of their servers, and the answers), max_bytes_per_client for those of one client without
// a session, limits.asks_per_session and limits.ask_timeout_ms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profile/profile.hpp"
#include "route/asks.hpp"
#include "route/call.hpp"
#include "route/call_ends.hpp"
#include "route/call_loop.hpp"
#include "route/call_parking.hpp"
#include "route/deadlines.hpp"

namespace bulkhead {

class InputRounds {
 public:
  static constexpr std::uint32_t max_rounds = 32;
  static constexpr std::uint64_t first_pause_ms = 100, max_pause_ms = 5'000;
  static constexpr std::size_t max_waiting_bytes = 64u << 20;
  static constexpr std::size_t max_bytes_per_client = 16u << 20;  // for a client without a session

  struct Needs {
    CallTable &calls;
    CallLoop &loop;
    const CallParking &parking;
    Deadlines &deadlines;
    Asks &asks;
    CallEnds &ends;
    // Sends a parked call again.
    std::function<void(Call &)> repeat;
    // The folders that the profile declares as roots of this server; null if it declares none.
    std::function<const std::vector<std::string> *(std::string_view server)> static_roots;
  };
  explicit InputRounds(Needs needs) : needs_(std::move(needs)) {}

  // ---- inside steps ----
  // Handles a result that asks for input. The call has left its lane when this returns, and may
  // have ended.
  void begin(Call &call, const Message &answer);
  // Sends the call again after this pause; 0 means after the current step. The call has left its
  // lane when this returns, and may have ended. Requires call.input.
  void pause(Call &call, std::uint64_t ms);
  // If every request of the round has been answered, sends the call again. If the call cannot
  // continue, ends it. Otherwise, does nothing.
  void proceed(Call &call);
  // Called when the call's pause is over or the client has not answered in time.
  void timed_out(Call &call);

  // ---- events ----
  // Called with the client's answer to request `number` (from 1) of the call's round, or with a
  // refusal that was composed in its place.
  void answered(std::uint64_t call, std::uint32_t number, const Message &answer);

 private:
  void ask(Call &call);
  void withdraw(Call &call);
  static void store(CallInput *input, std::size_t index, const Message &answer);
  bool is_full(const Call &call, std::size_t more) const;

  const Needs needs_;
};

}  // namespace bulkhead
