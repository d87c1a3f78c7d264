// Defines the frames (link/channel.hpp) that the supervisor and a compartment exchange. They use
// two sockets: a control socket, and a request socket on which the compartment requests resources
// from the supervisor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/archive.hpp"

namespace bulkhead::control {

// File descriptors that a compartment inherits.
inline constexpr int control_fd = 3;
inline constexpr int request_fd = 4;
// A socket for log lines: one LogLine per packet, sent from any thread. It is also the process's
// standard error.
inline constexpr int log_fd = 5;

inline constexpr std::uint64_t max_frame_bytes = 64u << 20;
inline constexpr std::uint64_t max_queue_bytes = 128u << 20;
// Limits for frames from a compartment, which may be compromised.
inline constexpr std::uint64_t max_answer_bytes = 4u << 20;
inline constexpr std::size_t max_ready_bytes = 32u << 10, max_ready_parts = 64;

enum Kind : std::uint16_t {
  // Frames from the supervisor. Each comment states which compartments receive the frame (if not
  // all of them do), how the frame's fields are used, and what the response is.
  slice = 1,  // the first frame; payload: archived Slice
  // Has an fd. payload: the compartment at the other end; value: trunk number. Endpoint only: if
  // code is 1, the process replaces that of a policy together with the profile in the frame `apply`
  // with the number in `plugin` (see Host::apply()).
  trunk,
  gave_up,  // endpoint only; payload: archived GaveUp
  // Endpoint only; sent before the trunk to the telemetry compartment. code: the BH_TELEMETRY_...
  // needs that the compartment's plugin most recently reported; payload: the compartment's name.
  telemetry_wants,
  // Orderly shutdown. code: 1 if another process replaces this one and receives its requests.
  stop,
  status_wanted,  // endpoint only; response: status
  // Compartments with servers. value: a sequence number; payload: archived ServerSettings;
  // response: settings_taken.
  settings,
  apply,  // endpoint only; value: a sequence number; payload: archived Apply; response: applied
  ping,   // checks that the compartment is responsive; response: pong
  // Endpoint only. exchange: a sequence number; code: an ApprovalRequest; payload: the request;
  // response: approvals_answer.
  approvals,

  // Frames from a compartment.
  ready = 16,  // confined, and the plugins were started; payload: archived Ready
  failed,      // payload: the reason; code: 0 or plugin_hung; the compartment then exits
  // endpoint only; payload: archived HostStatus; code: `asked` if this is a response to
  // status_wanted
  status,
  settings_taken,  // value: the number of the settings frame
  // Endpoint only. value: the number of the apply frame; code: a status; payload: archived
  // ApplyReport, or the reason why nothing was changed.
  applied,
  pong,
  trunk_lost,  // all except the endpoint; value: the number of the trunk that was closed
  unhealthy,   // endpoint only; payload: the unresponsive or misbehaving compartment
  // Endpoint only: the host has shut down, after `stop` or because no more clients can connect and
  // all requests have been answered. The endpoint then exits.
  finished,
  // Endpoint only. exchange: the number of the approvals frame; code: a status; payload: the
  // response, or an error message.
  approvals_answer,
  pins,       // endpoint only; payload: archived vector of at most max_pins_told PinNews
  kept_list,  // endpoint only; payload: archived ListNews
  // From a compartment that starts servers. payload: archived vector of at most max_ready_parts
  // strings, which name all isolation features that its servers' sandboxes lack.
  servers_missing
};

inline constexpr std::uint32_t asked = 1;
// The code of `failed` if a plugin did not return from loading in time.
inline constexpr std::uint32_t plugin_hung = 1;

// Frames on the request socket. A compartment sends one request at a time. The response has the
// same type; its code is a status, and its payload is the result or an error message.
enum Request : std::uint16_t {
  listen = 1,  // endpoint only, before `ready`; payload: archived Listen; the response has an fd
  get_secret,  // payload: archived Secret without a value
  put_secret,  // payload: archived Secret
  will_dial,   // payload: archived Listen; the endpoint may send it only before `ready`
  // payload: archived Listen with an address that the endpoint has announced with will_dial, or
  // that SlicePrivileges::dial of another compartment contains; the response has an fd
  dial,
  // payload: archived Secret whose value is the statement to sign. The response is an archived
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

struct ReadyPlugin {
  std::string path, version;  // of the file that runs; empty if the plugin has failed
};
template <class Ar>
void archive(Ar &ar, ReadyPlugin &v) {
  auto &[path, version] = v;
  ar(path, version);
}
struct Ready {
  std::vector<std::string> in_force, missing;  // isolation features
  std::uint32_t telemetry = 0;                 // the BH_TELEMETRY_... needs of a telemetry plugin
  std::vector<ReadyPlugin> plugins;            // in the order of the slice; empty: the endpoint
};
template <class Ar>
void archive(Ar &ar, Ready &v) {
  auto &[in_force, missing, telemetry, plugins] = v;
  ar(in_force, missing, telemetry, plugins);
}

// A log line on log_fd. Its packet begins with log_mark. A packet without log_mark is plain text
// that the process wrote to standard error.
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
  bool for_everybody = false;  // whether all users may connect to a Unix socket
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
