// The `requestState` of revision 2026-07-28: text that a client returns unchanged when it repeats a
// request. The text is encrypted and authenticated. It can be opened only for the same principal,
// method, name and arguments, in the same run of the endpoint, and before it expires.
//
// Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/scan.hpp"
#include "route/text_sealer.hpp"

namespace bulkhead {

// The values that must be the same in a request and its repetition.
struct StateBinding {
  std::string_view principal;
  mcp::Method method = mcp::Method::none;
  std::string_view name;       // the client's name or URI for the target; unescaped
  std::string_view arguments;  // JSON; empty if absent, which is equal to {}
};

enum class StateKind : std::uint8_t {
  server = 1,  // the payload contains the server's own requestState
  parked = 2   // the payload identifies a round of a parked call
};

struct OpenedState {
  StateKind kind = StateKind::server;
  std::string payload;
};

// Why a state cannot be opened, in the order in which the reasons are checked.
enum class StateFault : std::uint8_t {
  forged,         // also truncated, extended, or sealed with another key
  earlier_epoch,  // the endpoint has restarted
  expired,
  other_principal,
  other_target,    // method or name
  other_arguments  // or arguments that are not JSON of at most 128 levels
};

// Returns the reason as a message for the client.
std::string_view to_string(StateFault fault) noexcept;

class StateSealer {
 public:
  static constexpr std::size_t max_payload = 64u << 10;  // bytes

  // `key` is HostOptions::sealing_key. If the key does not have TextSealer::key_bytes bytes, a
  // random key is used, and states become invalid when the process exits. This makes no difference
  // if the epoch increases with each run.
  StateSealer(std::string_view key, std::uint32_t epoch);

  // Times are on the machine's monotonic clock. Returns nullopt if the payload is longer than
  // max_payload, or if the arguments are not JSON with at most 128 levels of nesting.
  std::optional<std::string> seal(StateKind kind, std::string_view payload,
                                  const StateBinding &binding, std::uint64_t expires_ns) const;
  // The digest of the arguments is computed only if the state passes all other checks.
  std::expected<OpenedState, StateFault> open(std::string_view state, const StateBinding &binding,
                                              std::uint64_t now_ns) const;

 private:
  const TextSealer sealer_;
  const std::uint32_t epoch_;
};

}  // namespace bulkhead
