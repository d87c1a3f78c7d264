// Frames between the supervisor and one compartment (link/channel.hpp), and the second socket, on
// which a compartment requests resources from the supervisor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/archive.hpp"

namespace bulkhead::control {

// The descriptors that a compartment is started with.
inline constexpr int control_fd = 3;
inline constexpr int request_fd = 4;
// Packets, one per log line, from any thread; also standard error. See LogLine.
inline constexpr int log_fd = 5;

inline constexpr std::uint64_t max_frame_bytes = 64u << 20;
inline constexpr std::uint64_t max_queue_bytes = 128u << 20;
// Limits for frames of a compartment, which may be compromised.
inline constexpr std::uint64_t max_answer_bytes = 4u << 20;
inline constexpr std::size_t max_ready_bytes = 16u << 10, max_ready_parts = 64;

enum Kind : std::uint16_t {
  // From the supervisor.
  slice = 1,        // first; payload: archived Slice
  trunk,            // fd; payload: the compartment at its other end; value: its number
  gave_up,          // router; payload: archived GaveUp
  telemetry_wants,  // router; code: BH_TELEMETRY_... needs that the telemetry plugin of a
                    // compartment has last reported; payload: the compartment. Sent before its
                    // trunk
  stop,             // shut down in order
  status_wanted,    // answered with status
  definitions,      // not router; value: a number; payload: archived map of them; answered with
                    // definitions_taken
  apply,            // router; value: a number; payload: archived Apply; answered with applied
  ping,             // answered with pong by each compartment, to show that it is responsive
  approvals,        // router; exchange: a number; code: an ApprovalRequest; payload: its value;
                    // answered with approvals_answer

  // From the compartment.
  ready = 16,         // confined, plugins started; payload: archived Ready
  failed,             // payload: why it cannot run; it exits
  status,             // router; payload: archived HostStatus; code: asked, if it was
  definitions_taken,  // value: the number
  applied,  // router; value: the number; code: status; payload: archived ApplyReport, or the reason
            // why nothing has changed
  pong,
  trunk_lost,  // not router; value: the number of the trunk that has ended
  unhealthy,   // router; payload: a compartment that is unresponsive or violates the protocol
  finished,    // router; no further client can connect and all requests are answered; it exits
  approvals_answer,  // router; exchange: the number; code: status; payload: the answer's value, or
                     // the error's text
  pins,              // router; payload: archived vector of at most max_pins_told PinNews
  kept_list,         // router; payload: archived ListNews
  servers_missing    // of a compartment that starts servers; payload: archived vector of at most
                     // max_ready_parts words: everything that their sandboxes lack so far
};

inline constexpr std::uint32_t asked = 1;

// On the request socket; one request at a time, answered by a frame of the same kind with code:
// status, payload: the value or the error's text.
enum Request : std::uint16_t {
  listen = 1,  // payload: archived Listen; the answer has the fd. Only before `ready`
  get_secret,  // payload: archived Secret without a value
  put_secret,  // payload: archived Secret
  will_dial,   // payload: archived Listen. Only before `ready`
  dial,        // payload: archived Listen announced by will_dial; the answer has the fd
  sign         // payload: archived Secret: the statement is its value; the answer is an archived
               // AuditSignature
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
  std::vector<std::string> in_force, missing;  // protections of the confinement
  std::uint32_t telemetry = 0;                 // BH_TELEMETRY_... needs of a telemetry compartment
};
template <class Ar>
void archive(Ar &ar, Ready &v) {
  auto &[in_force, missing, telemetry] = v;
  ar(in_force, missing, telemetry);
}

// On log_fd, after the byte log_mark; a packet without it is text written to standard error.
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
  bool for_everybody = false;  // a Unix socket's file
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
