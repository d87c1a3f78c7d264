// Frames between the supervisor and one compartment (link/channel.hpp), and frames on a second
// socket on which a compartment requests resources from the supervisor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/archive.hpp"

namespace bulkhead::control {

// Descriptors that a compartment inherits.
inline constexpr int control_fd = 3;
inline constexpr int request_fd = 4;
// A socket that carries one log line per packet, from any thread. Also used as standard error. See
// LogLine.
inline constexpr int log_fd = 5;

inline constexpr std::uint64_t max_frame_bytes = 64u << 20;
inline constexpr std::uint64_t max_queue_bytes = 128u << 20;
// Limits for frames sent by a compartment, which may be compromised.
inline constexpr std::uint64_t max_answer_bytes = 4u << 20;
inline constexpr std::size_t max_ready_bytes = 16u << 10, max_ready_parts = 64;

enum Kind : std::uint16_t {
  // Sent by the supervisor.
  slice = 1,  // first; payload: archived Slice
  trunk,      // fd; payload: the compartment at the other end; value: trunk number
  gave_up,    // router; payload: archived GaveUp
  // Router only. Sent before the compartment's trunk. code: the BH_TELEMETRY_... needs most
  // recently reported by the compartment's telemetry plugin; payload: the compartment.
  telemetry_wants,
  stop,           // orderly shutdown
  status_wanted,  // answered by status
  // Sent to all compartments but the router; answered by definitions_taken. value: a number;
  // payload: archived map of definitions.
  definitions,
  apply,  // router; value: a number; payload: archived Apply; answered by applied
  ping,   // answered by pong; checks that the compartment responds
  // Router only; answered by approvals_answer. exchange: a number; code: an ApprovalRequest;
  // payload: the value of the request.
  approvals,

  // Sent by the compartment.
  ready = 16,         // confined, plugins started; payload: archived Ready
  failed,             // payload: the reason; the compartment exits
  status,             // router; payload: archived HostStatus; code: `asked` if it was requested
  definitions_taken,  // value: the number of the definitions frame
  // From the router. value: the number of the apply frame; code: status; payload: archived
  // ApplyReport, or the reason why nothing has changed.
  applied,
  pong,
  trunk_lost,  // not router; value: the number of the lost trunk
  unhealthy,   // router; payload: the unresponsive or misbehaving compartment
  // From the router. Clients can no longer connect and all requests have been answered, so the
  // compartment exits.
  finished,
  // From the router. exchange: the number of the approvals frame; code: status; payload: the value
  // of the answer, or the error message.
  approvals_answer,
  pins,       // router; payload: archived vector of at most max_pins_told PinNews
  kept_list,  // router; payload: archived ListNews
  // From a compartment that starts servers. payload: archived vector of at most max_ready_parts
  // identifiers, which are all parts that the servers' sandboxes have lacked so far.
  servers_missing
};

inline constexpr std::uint32_t asked = 1;

// Frames on the request socket, one request at a time. The answer is a frame of the same type; its
// code is a status, and its payload is the result or the error message.
enum Request : std::uint16_t {
  listen = 1,  // payload: archived Listen; the answer contains the fd. Only before `ready`
  get_secret,  // payload: archived Secret without a value
  put_secret,  // payload: archived Secret
  will_dial,   // payload: archived Listen. Only before `ready`
  dial,        // payload: archived Listen that will_dial announced; the answer contains the fd
  // payload: archived Secret whose value is the statement. The answer is an archived
  // AuditSignature.
  sign
};
inline constexpr int request_timeout_ms = 5'000;
inline constexpr std::uint64_t max_request_bytes = 256u << 10;

struct GaveUp {
  std::string compartment, reason;
};
template <class Ar>
void archive(Ar &ar, GaveUp &v) {
  auto &[compartment, reason] = v;
  ar(compartment, reason);
}

struct Ready {
  std::vector<std::string> in_force, missing;  // parts of the confinement
  std::uint32_t telemetry = 0;                 // BH_TELEMETRY_... needs of a telemetry plugin
};
template <class Ar>
void archive(Ar &ar, Ready &v) {
  auto &[in_force, missing, telemetry] = v;
  ar(in_force, missing, telemetry);
}

// A log line on log_fd, after the byte log_mark. Packets without log_mark are text written to
// standard error.
inline constexpr char log_mark = 1;
inline constexpr std::size_t max_log_bytes = 8192;
struct LogLine {
  std::int32_t level = 0;
  std::string component, text;
};
template <class Ar>
void archive(Ar &ar, LogLine &v) {
  auto &[level, component, text] = v;
  ar(level, component, text);
}

struct Listen {
  std::string address;  // a sockaddr
  std::string as_configured;
  bool for_everybody = false;  // whether all users may use a Unix socket's file
};
template <class Ar>
void archive(Ar &ar, Listen &v) {
  auto &[address, as_configured, for_everybody] = v;
  ar(address, as_configured, for_everybody);
}

struct Secret {
  std::string instance, name, value;
};
template <class Ar>
void archive(Ar &ar, Secret &v) {
  auto &[instance, name, value] = v;
  ar(instance, name, value);
}

}  // namespace bulkhead::control
