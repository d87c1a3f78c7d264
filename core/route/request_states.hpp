// Seals and opens the `requestState` that clients of MCP 2026-07-28 return with the repetition of a
// request: of parked calls, and of servers of that revision. See sealed_state.hpp for what a state
// is bound to.
//
// Thread-safe. Owned by the Router.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "route/message.hpp"
#include "route/parked_inputs.hpp"
#include "route/repeated_request.hpp"
#include "route/sealed_state.hpp"

namespace bulkhead {

struct Call;
struct Session;

class RequestStates {
 public:
  // As in StateSealer.
  RequestStates(std::string_view key, std::uint32_t epoch) : sealer_(key, epoch) {}

  // The state for the client's request that the call answers; a JSON string. Times are on the
  // machine's monotonic clock. Returns nothing if the state is longer than
  // StateSealer::max_payload.
  std::optional<std::string> seal(const ParkedTicket &ticket, const Call &call,
                                  std::uint64_t expires_ns) const;
  std::optional<std::string> seal(const RequestState &state, const Call &call,
                                  std::uint64_t expires_ns) const;

  // Opens the state of a request (a JSON value). Otherwise returns why it is rejected, for the
  // client.
  using Opened = std::variant<ParkedTicket, RequestState>;
  std::expected<Opened, std::string> open(const Session &session, const Message &request,
                                          std::string_view state, std::uint64_t now_ns) const;

  // The name under which a session's parked calls are counted.
  static std::string principal_of(const Session &session);

 private:
  std::optional<std::string> seal(StateKind kind, std::string_view payload, const Call &call,
                                  std::uint64_t expires_ns) const;

  const StateSealer sealer_;
};

}  // namespace bulkhead
