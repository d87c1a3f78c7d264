// The state of policy-rules that a replacement takes over (bh.state/1): the counts of all budgets,
// the calls whose results will be counted, and the calls that await approval.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace bulkhead::rules {

// The strings are borrowed: from the Counters and the Judge, or from the encoded text.
struct CounterState {
  static constexpr std::string_view kSchema = "bulkhead.policy-rules.counters";
  static constexpr std::uint32_t kVersion = 1;
  // Only the newest calls are part of the state.
  static constexpr std::size_t kMaxCalls = 8'192;

  // A key is stored in two parts, because many keys begin with the same part.
  struct Key {
    std::string_view begin, rest;
    std::string whole() const { return std::string(begin).append(rest); }
  };
  static Key split(std::string_view key);

  struct Count {
    Key key;
    std::uint8_t kind = 0;
    std::uint64_t per_ms = 0;
    std::uint64_t windows_ago = 0;  // 0: `now` is the amount for the current window
    std::uint64_t now = 0, before = 0;
    std::uint64_t idle_ms = 0;
    bool may_drop = false;  // may be omitted if there is no room
    std::string_view principal;
    std::vector<std::string_view> seen, seen_before;
  };
  struct CountedKey {
    Key key;
    std::string_view principal;
  };
  struct Call {
    std::uint64_t exchange = 0;
    std::vector<CountedKey> keys;
  };

  std::vector<Count> counts;  // those with may_drop are first, in the order in which to omit them
  std::vector<Call> awaited;  // calls whose results will be counted, oldest first
  std::vector<Call> asked;    // calls that await approval and are already counted, oldest first
};

// Returns at most max_bytes. Omits counts with may_drop if necessary. If that is not sufficient,
// returns an error message.
std::expected<std::string, std::string> encode(const CounterState &state, std::size_t max_bytes);
// Returns nothing if the text is malformed. The text may be hostile; it must outlive the result.
bool decode(std::string_view text, CounterState *out);

}  // namespace bulkhead::rules
