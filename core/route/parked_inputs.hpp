// All parked calls (see parked_input.hpp), with their numbers, limits and deadlines.
//
// A call is parked when its server sends the first request to a client that answers by repeating
// its own request. The caller seals ParkedTicket::text() as the payload of the client's
// requestState (sealed_state.hpp), which binds it to the client's request. The principal is checked
// here as well.
//
// Runs on the I/O thread. Owned by the Router. Limits: ParkedLimits, and those of ParkedInput. If a
// limit is reached, the oldest stored ends are removed to make room for another call. All parked
// calls are lost when the process exits.
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
#include "route/parked_input.hpp"

namespace bulkhead {

// Identifies a round of a parked call.
struct ParkedTicket {
  std::uint64_t number = 0;
  std::uint32_t round = 0;

  std::string text() const;
  // Returns nullopt unless the text was composed by text().
  static std::optional<ParkedTicket> read(std::string_view text) noexcept;
  bool operator==(const ParkedTicket &) const = default;
};

struct ParkedLimits {
  std::uint32_t calls = 1024;  // of all principals, with the stored ends
  std::uint32_t calls_per_principal = 128;
  std::uint64_t bytes = 64ull << 20;  // memory of all calls
};

class ParkedInputs {
 public:
  // Asks that arrive within this time after the first one are sent in the same round.
  static constexpr std::uint64_t window_ms = 20;
  // How long the end of a call is stored for a client that repeats a request whose stream was lost.
  static constexpr std::uint64_t rejoin_ms = 60'000;
  static constexpr std::size_t max_end_bytes = 1u << 20;  // larger ends are not stored

  // See Slots for first_generation.
  ParkedInputs(const ParkedLimits &limits, std::uint32_t first_generation)
      : limits_(limits), entries_(first_generation) {}

  // Parks a call with its first ask. `call` is the caller's number for the call. Returns the number
  // of the parked call. If a limit has been reached, returns an error message that names it, for
  // the server.
  std::expected<std::uint64_t, std::string> park(std::string_view principal, std::uint64_t call,
                                                 ParkedAsk ask, std::uint64_t now_ns);
  // Makes the client's request wait for the next round or the end of a call that was just parked.
  void wait(std::uint64_t number, std::uint64_t request);
  // Adds an ask to a parked call. Returns an error message if the ask is refused, and an empty
  // string otherwise.
  std::string add_ask(std::uint64_t number, ParkedAsk ask, std::uint64_t now_ns);
  // Called when the server has withdrawn the ask.
  void remove_ask(std::uint64_t number, std::uint64_t ask);

  // Called when the client repeats its request. On success, the call is still parked, and its phase
  // determines how the request is answered; see ParkedInput::Retry.
  std::expected<ParkedInput::Retry, RetryFault> retry(std::string_view principal,
                                                      const ParkedTicket &ticket,
                                                      std::uint64_t request,
                                                      std::string_view responses,
                                                      std::uint64_t now_ns);
  // Called when the client has given up a waiting request. Returns true if the client has thereby
  // given up the call, that is, if no other request waits for the call and the client has not been
  // asked.
  bool leave(std::uint64_t number, std::uint64_t request);
  // Removes the call. Returns the requests that wait for it.
  std::vector<std::uint64_t> forget(std::uint64_t number);
  // Called when the call has ended. Returns the requests that wait for its end. If the end fits, it
  // is stored for rejoin_ms, or longer if the client still has time to answer.
  std::vector<std::uint64_t> end(std::uint64_t number, std::string_view text, std::uint64_t now_ns,
                                 std::uint32_t http_status = 0);

  // Something that is due. `call` is the caller's number for the call, or 0 if the call has ended.
  struct Due {
    enum class Kind : std::uint8_t {
      round,       // a round was closed: `requests` get find(number)->input_requests()
      unanswered,  // the client has not answered in time; the call must be ended
      forgotten    // a stored end was removed
    };
    Kind kind = Kind::round;
    std::uint64_t number = 0;  // except for `round`, it is no longer parked
    std::uint64_t call = 0;
    std::vector<std::uint64_t> requests;
  };
  // Returns everything that is due, in chronological order.
  std::vector<Due> due(std::uint64_t now_ns);
  // The time of the next event; nothing if there is none.
  std::optional<std::uint64_t> next_ns() const noexcept;

  const ParkedInput *find(std::uint64_t number) const noexcept;
  ParkedTicket ticket(std::uint64_t number) const noexcept;  // of the current round
  // Returns the caller's number for the call, or 0 if the call is unknown or has ended.
  std::uint64_t call_of(std::uint64_t number) const noexcept;
  std::size_t size() const noexcept { return entries_.size(); }
  std::size_t size_of(std::string_view principal) const;
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  struct Entry {
    ParkedInput call;
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
  Due take_due(std::uint64_t number, Entry &entry, std::uint64_t now_ns);
  void erase(std::uint64_t number);

  const ParkedLimits limits_;
  Slots<Entry> entries_;
  std::unordered_map<std::string, std::size_t> by_principal_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> deadlines_;  // time, number
  std::size_t bytes_ = 0;
};

}  // namespace bulkhead
