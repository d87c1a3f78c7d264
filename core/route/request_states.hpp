// Seals and opens the `requestState` that clients of MCP 2026-07-28 return when they repeat a
// request. It contains either the number of a parked call or the state from a server of that
// revision. See sealed_state.hpp for the values that a state is bound to.
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
  // For the parameters, see StateSealer.
  RequestStates(std::string_view key, std::uint32_t epoch) : sealer_(key, epoch) {}

  // Seals the state that the client returns when it repeats the request of this call. Returns a
  // JSON string, or nullopt if can_seal() returns false, the state is longer than
  // StateSealer::max_payload, the name of its server contains a NUL, or the call's arguments are
  // nested too deeply (see StateSealer::seal()). Times are on the machine's monotonic clock.
  std::optional<std::string> seal(const ParkedTicket &ticket, const Call &call,
                                  std::uint64_t expires_ns) const;
  std::optional<std::string> seal(const RequestState &state, const Call &call,
                                  std::uint64_t expires_ns) const;

  // Returns false if the call has no session, or if the values to which a state is bound are not
  // available; see KeptRequest.
  static bool can_seal(const Call &call);

  // Opens the state (a JSON value) that the client has sent with a request. If the state is
  // rejected, returns the reason as a message for the client.
  using Opened = std::variant<ParkedTicket, RequestState>;
  std::expected<Opened, std::string> open(const Session &session, const Message &request,
                                          std::string_view state, std::uint64_t now_ns) const;

  // Returns the session's transport and principal, to which states and task ids are bound. Parked
  // calls are counted by this text.
  static std::string principal_of(const Session &session);

 private:
  std::optional<std::string> seal(StateKind kind, std::string_view payload, const Call &call,
                                  std::uint64_t expires_ns) const;

  const StateSealer sealer_;
};

}  // namespace bulkhead
