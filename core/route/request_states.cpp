#include "route/request_states.hpp"

#include "route/call.hpp"
#include "route/session.hpp"

namespace bulkhead {
namespace {

// Separates the parts of the payload. The server's own state is the last part, because it may
// contain any byte.
constexpr char part_end = '\0';

std::string payload_of(const RequestState &state) {
  std::string out = state.server;
  out.append(1, part_end).append(state.token);
  return out;
}

std::optional<RequestState> read_payload(std::string_view payload) {
  const std::size_t end = payload.find(part_end);
  if (end == std::string_view::npos) return std::nullopt;
  return RequestState{std::string(payload.substr(0, end)), std::string(payload.substr(end + 1))};
}

// Names that contain a NUL cannot be stored, because a NUL ends the name in the payload.
bool has_part_end(std::string_view text) {
  return text.find(part_end) != std::string_view::npos;
}

}  // namespace

std::string RequestStates::principal_of(const Session &s) {
  return s.transport + '\n' + s.principal;
}

namespace {

// Returns the values to which a state of the call is bound: those that the call has kept or, if it
// has not been sent, those of its parked message. Returns nullopt if they are not available.
// *scratch stores the name if necessary.
std::optional<StateBinding> binding_of(const Call &call, std::string_view principal,
                                       std::string *scratch) {
  if (call.session == nullptr) return std::nullopt;
  StateBinding out{principal, call.method, {}, {}};
  if (!call.session->repeats_requests) return out;  // about a task: the client does not repeat it
  if (call.request.kept.any()) {
    out.name = call.request.kept.target();
    out.arguments = call.request.kept.arguments();
    return out;
  }
  const bool is_answer =
      call.stage == Stage::answer_checking || call.stage == Stage::answer_deciding;
  if (call.parked == nullptr || is_answer) return std::nullopt;
  const Message message = call.parked->message.get();
  out.name = mcp::unquote(message[call.parked->target.range], scratch);
  out.arguments = message[message.scan->arguments];
  return out;
}

}  // namespace

bool RequestStates::can_seal(const Call &call) {
  std::string scratch;
  return binding_of(call, {}, &scratch).has_value();
}

std::optional<std::string> RequestStates::seal(StateKind kind, std::string_view payload,
                                               const Call &call, std::uint64_t expires_ns) const {
  if (call.session == nullptr) return std::nullopt;
  const std::string principal = principal_of(*call.session);
  std::string scratch;
  const auto binding = binding_of(call, principal, &scratch);
  if (!binding) return std::nullopt;
  auto sealed = sealer_.seal(kind, payload, *binding, expires_ns);
  if (sealed) *sealed = '"' + *sealed + '"';
  return sealed;
}

std::optional<std::string> RequestStates::seal(const ParkedTicket &ticket, const Call &call,
                                               std::uint64_t expires_ns) const {
  return seal(StateKind::parked, ticket.text(), call, expires_ns);
}

std::optional<std::string> RequestStates::seal(const RequestState &state, const Call &call,
                                               std::uint64_t expires_ns) const {
  if (has_part_end(state.server)) return std::nullopt;
  return seal(StateKind::server, payload_of(state), call, expires_ns);
}

std::expected<RequestStates::Opened, std::string> RequestStates::open(const Session &s,
                                                                      const Message &request,
                                                                      std::string_view state,
                                                                      std::uint64_t now_ns) const {
  if (!state.starts_with('"')) return std::unexpected("requestState must be a string");
  const mcp::Scan &scan = *request.scan;
  std::string scratch, name_scratch;
  const mcp::Range name = scan.method == mcp::Method::resources_read ? scan.uri : scan.name;
  const std::string principal = principal_of(s);
  const auto opened =
      sealer_.open(mcp::unquote(state, &scratch),
                   {principal, scan.method,
                    name.empty() ? std::string_view{} : mcp::unquote(request[name], &name_scratch),
                    request[scan.arguments]},
                   now_ns);
  if (!opened) return std::unexpected(std::string(to_string(opened.error())));
  if (opened->kind == StateKind::parked) {
    if (const auto ticket = ParkedTicket::read(opened->payload)) return *ticket;
  } else if (auto server = read_payload(opened->payload)) {
    return *std::move(server);
  }
  return std::unexpected(std::string(to_string(StateFault::forged)));
}

}  // namespace bulkhead
