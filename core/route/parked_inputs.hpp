// All parked calls (see parked_input.hpp), with their numbers, limits and deadlines.
//
// A call is parked with its first ask to a client that answers by repeating its own request. The
// caller seals ParkedTicket::text() as the payload of the client's requestState
// (sealed_state.hpp), which binds it to the client's request. The principal is checked here as
// well.
//
// Runs on the reactor thread. Owned by ClientInputs. Limits: ParkedLimits, limit_asks(), and those
// of ParkedInput. All parked calls are lost when the process exits.
//
// If a limit is reached, room is made at the cost of the largest group: of the principals, the one
// with the most parked calls (or bytes, depending on the limit); of its peers, the one with the
// most; of that peer's connections, the one with the most. This connection loses its oldest stored
// end; if it has none, its oldest call whose client has been asked; if it has none of these either,
// its oldest parked call. Because of these limits, an ask is refused only if this rule, with the
// ask counted, selects the ask's own connection, and that connection has no stored end to remove.
// Therefore, a client that parks any number of calls cannot prevent other connections from being
// asked. A client that uses a new connection for each call can do no more than evict the calls that
// were parked first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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
  // Parses the result of text(). Returns nullopt for any other text.
  static std::optional<ParkedTicket> read(std::string_view text) noexcept;
  bool operator==(const ParkedTicket &) const = default;
};

struct ParkedLimits {
  std::uint32_t calls = 1024;  // of all principals, including stored ends
  std::uint32_t calls_per_principal = 128;
  std::uint64_t bytes = 64ull << 20;  // memory of all calls
  std::uint64_t bytes_per_principal = 16ull << 20;
};

// The client of a parked call.
struct ParkedOwner {
  std::string principal;     // see RequestStates::principal_of()
  std::string peer;          // of the principal; see peer_group()
  std::string connection{};  // of the peer
};

class ParkedInputs {
 public:
  // Asks that arrive within this time after the first one are sent in the same round.
  static constexpr std::uint64_t window_ms = 20;
  // How long the end of a call is stored for a client that repeats a request whose stream was lost.
  static constexpr std::uint64_t rejoin_ms = 60'000;

  // For first_generation, see Slots.
  ParkedInputs(const ParkedLimits &limits, std::uint32_t first_generation)
      : limits_(limits), entries_(first_generation) {}

  // Sets the maximum number of open asks for each peer (limits.asks_per_session).
  void limit_asks(std::size_t per_peer) noexcept { asks_per_peer_ = per_peer; }
  // Parks a call with its first ask. `call` is the caller's number for the call. Returns the number
  // of the parked call. If no room can be made, returns an error message for the server that names
  // the limit.
  std::expected<std::uint64_t, std::string> park(ParkedOwner owner, std::uint64_t call,
                                                 ParkedAsk ask, std::uint64_t now_ns);
  // Makes a request of the client wait for the next round or the end of a parked call. Does not
  // check max_waiting. In phase `asked`, the call must have ended: the request waits for end(), and
  // the call is kept until then.
  void wait(std::uint64_t number, std::uint64_t request);
  // Adds an ask to a parked call. Returns an error message if the ask is rejected, and an empty
  // string otherwise.
  std::string add_ask(std::uint64_t number, ParkedAsk ask, std::uint64_t now_ns);
  // Called when the ask has ended for any reason; see ParkedInput::remove_ask().
  void remove_ask(std::uint64_t number, std::uint64_t ask);

  // Called when the client repeats its request. On success, the call is still parked, and its phase
  // determines the response to the request; see ParkedInput::Retry.
  std::expected<ParkedInput::Retry, RetryFault> retry(std::string_view principal,
                                                      const ParkedTicket &ticket,
                                                      std::uint64_t request,
                                                      std::string_view responses,
                                                      std::uint64_t now_ns);
  // Called when the client has abandoned a waiting request. Returns true if it has thereby
  // abandoned the call, that is, if no other request waits for the call and no round is waiting for
  // the client's answers.
  bool leave(std::uint64_t number, std::uint64_t request);
  // Removes the call. Returns the requests that wait for it.
  std::vector<std::uint64_t> forget(std::uint64_t number);
  // Called when the call has ended. `text` is the member "result" or "error" of the response.
  // Returns the requests that wait for the end. The text is stored for rejoin_ms, or longer if the
  // client still has time to answer. If it does not fit, an error that states that the call has run
  // is stored instead.
  std::vector<std::uint64_t> end(std::uint64_t number, std::string_view text, std::uint64_t now_ns,
                                 std::uint32_t http_status = 0);

  // Removes the stored ends, which are the final responses of ended calls. A client that repeats
  // its request for such a call gets the same error as after rejoin_ms.
  void forget_ends();

  // An event that is due. `call` is the caller's number for the call, or 0 if the call has ended.
  struct Due {
    enum class Kind : std::uint8_t {
      round,       // a round was closed: `requests` get find(number)->input_requests()
      unanswered,  // the client has not answered in time; the call must be ended
      evicted,     // the call must be ended, and `requests` get an error
      forgotten    // a stored end was removed
    };
    Kind kind = Kind::round;
    std::uint64_t number = 0;  // of the call, which is no longer parked unless kind is `round`
    std::uint64_t call = 0;
    std::vector<std::uint64_t> requests;
  };
  // Returns everything that is due: the evicted calls, which are due immediately, and then the
  // other events in chronological order.
  std::vector<Due> due(std::uint64_t now_ns);
  // Returns the time at which the next event is due, or nullopt if there is none.
  std::optional<std::uint64_t> next_ns() const noexcept;

  const ParkedInput *find(std::uint64_t number) const noexcept;
  ParkedTicket ticket(std::uint64_t number) const noexcept;  // of the current round
  // Returns the caller's number for the call, or 0 if the call is unknown or has ended.
  std::uint64_t call_of(std::uint64_t number) const noexcept;
  // For tests: how many calls are parked, and the bytes that are counted for them.
  std::size_t size() const noexcept { return entries_.size(); }
  std::size_t size_of(std::string_view principal) const { return sums(principal).calls; }
  std::size_t bytes() const noexcept { return all_.bytes; }

 private:
  struct Sums {
    std::size_t calls = 0, bytes = 0, asks = 0;
  };
  struct Entry {
    ParkedInput call;
    ParkedOwner owner;
    std::uint64_t call_number = 0;
    std::uint64_t sequence = 0;     // in the order in which calls were parked
    std::uint64_t deadline_ns = 0;  // 0: none
    Sums counted{};                 // in the sums of its groups

    bool ended() const noexcept { return call.phase() == ParkedInput::Phase::ended; }
  };
  // The groups of an owner, from the largest to the smallest.
  enum class Group : std::uint8_t { all, principal, peer, connection };
  // What is to be added, and for whom.
  struct Need {
    const ParkedOwner &owner;
    Sums more;
    std::uint64_t number = 0;  // the parked call that gets larger, or 0
    bool ends_only = false;    // only stored ends may be removed
  };
  struct Full {
    std::string_view what;
    std::uint64_t limit;
    Group group;              // that is at its limit
    std::size_t Sums::*unit;  // that is limited
  };
  using Numbered = std::pair<std::uint64_t, const Entry *>;

  std::string make_room(const Need &need);
  std::optional<Full> exceeded(const Need &need) const;
  std::uint64_t find_removable(const Need &need, const Full &full) const;
  Sums counted(std::uint64_t number) const;
  Sums sums(std::string_view group) const;
  void add(const ParkedOwner &owner, const Sums &sums, bool negative);
  void count(Entry &entry);
  void set_deadline(std::uint64_t number, Entry &entry, std::uint64_t deadline_ns);
  Due take_due(std::uint64_t number, Entry &entry, std::uint64_t now_ns);
  void evict(std::uint64_t number);
  void erase(std::uint64_t number);

  const ParkedLimits limits_;
  std::size_t asks_per_peer_ = SIZE_MAX;
  Slots<Entry> entries_;
  std::uint64_t sequence_ = 0;
  Sums all_;
  std::unordered_map<std::string, Sums> sums_;                   // of principals and peers
  std::set<std::pair<std::uint64_t, std::uint64_t>> deadlines_;  // time, number
  std::vector<Due> evictions_;                                   // not reported yet
  std::deque<std::uint64_t> evicted_;                            // most recently evicted calls
};

}  // namespace bulkhead
