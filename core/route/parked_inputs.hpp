// All parked calls (see parked_call.hpp): their numbers, limits and times.
//
// A call is parked when its server sends its first request to a client that answers by repeating
// its own request. The caller seals ParkedTicket::text() as the payload of the client's
// requestState (sealed_state.hpp), which binds it to the request; the principal is checked here as
// well.
//
// Runs on the I/O thread. Owned by the Router. Limits: limits.parked_calls,
// limits.parked_calls_per_principal, limits.parked_bytes, and those of ParkedCall. At a limit,
// stored ends make room for another call, the oldest first. Nothing outlives the process.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/slots.hpp"
#include "profile/profile.hpp"
#include "route/parked_call.hpp"

namespace bulkhead {

// A round of a parked call.
struct ParkedTicket {
  std::uint64_t number = 0;
  std::uint32_t round = 0;

  std::string text() const;
  // Returns nothing for other text than that of text().
  static std::optional<ParkedTicket> read(std::string_view text) noexcept;
  bool operator==(const ParkedTicket &) const = default;
};

class ParkedInputs {
 public:
  // Asks of a server that are at most this far apart are in one round.
  static constexpr std::uint64_t window_ms = 20;
  // Time for a client to repeat a request whose stream was lost: how long a call without a waiting
  // request continues, and how long an end is stored.
  static constexpr std::uint64_t rejoin_ms = 60'000;
  static constexpr std::size_t max_end_bytes = 1u << 20;  // larger ends are not stored

  // first_generation is as in Slots.
  ParkedInputs(const Limits &limits, std::uint32_t first_generation)
      : limits_(limits), entries_(first_generation) {}

  // Parks a call with its first ask. `request` is the client's request that waits, `call` the
  // caller's number of the call. Returns the number of the parked call, or the reason with the
  // limit, for the error that the server gets.
  std::expected<std::uint64_t, std::string> park(std::string_view principal, std::uint64_t call,
                                                 std::uint64_t request, ParkedAsk ask,
                                                 std::uint64_t now_ns);
  // Adds an ask to a parked call. Returns the reason if it is refused; empty: added.
  std::string add_ask(std::uint64_t number, ParkedAsk ask, std::uint64_t now_ns);
  // The server has withdrawn the ask.
  void remove_ask(std::uint64_t number, std::uint64_t ask);

  // A repeated request. If the result is a value, `number` is still parked, and its phase says what
  // the request gets: see ParkedCall::Retry.
  std::expected<ParkedCall::Retry, RetryFault> retry(std::string_view principal,
                                                     const ParkedTicket &ticket,
                                                     std::uint64_t request,
                                                     std::string_view responses,
                                                     std::uint64_t now_ns);
  // The stream of a waiting request was lost. The call continues for rejoin_ms.
  void leave(std::uint64_t number, std::uint64_t request, std::uint64_t now_ns);
  // The call has ended. Returns the requests that wait for its end. The end is stored if it fits.
  std::vector<std::uint64_t> end(std::uint64_t number, std::string_view text, std::uint64_t now_ns);

  // What is due. `call` is the caller's number; it is 0 if the call has ended.
  struct Due {
    enum class Kind : std::uint8_t {
      round,       // a round was closed: `requests` get find(number)->input_requests()
      unanswered,  // the client has not answered in limits.ask_timeout_ms; the call must be ended
      abandoned,   // no request waits for the call in rejoin_ms; the call must be ended
      forgotten    // a stored end was removed
    };
    Kind kind = Kind::round;
    std::uint64_t number = 0;  // except for `round`, it is no longer parked
    std::uint64_t call = 0;
    std::vector<std::uint64_t> requests;
  };
  // Returns everything that is due, in the order of its times.
  std::vector<Due> due(std::uint64_t now_ns);
  // The time of the next event; nothing if there is none.
  std::optional<std::uint64_t> next_ns() const noexcept;

  const ParkedCall *find(std::uint64_t number) const noexcept;
  ParkedTicket ticket(std::uint64_t number) const noexcept;  // of the current round
  std::size_t size() const noexcept { return entries_.size(); }
  std::size_t size_of(std::string_view principal) const;
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Entry {
    ParkedCall call;
    std::string principal;
    std::uint64_t call_number = 0;
    std::uint64_t deadline_ns = 0;  // 0: none
    std::size_t bytes = 0;          // counted in bytes_
  };

  std::string refusal(std::string_view principal, const ParkedAsk &ask);
  bool make_room(std::optional<std::string_view> principal);
  bool fits(std::size_t bytes) const noexcept;
  void count_bytes(Entry &entry);
  void set_deadline(std::uint64_t number, Entry &entry, std::uint64_t deadline_ns);
  void set_working_deadline(std::uint64_t number, Entry &entry, std::uint64_t now_ns);
  Due take_due(std::uint64_t number, Entry &entry, std::uint64_t now_ns);
  void erase(std::uint64_t number);

  const Limits &limits_;
  Slots<Entry> entries_;
  std::unordered_map<std::string, std::size_t> by_principal_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> deadlines_;  // time, number
  std::size_t bytes_ = 0;
};

}  // namespace bulkhead
