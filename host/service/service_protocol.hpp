// Defines the requests of the service API as typed values, and their serialization.
//
// The client side (service_api.hpp) may run in a separate process; the gateway side is service.hpp.
// A request consists of a type and an archived value. A response consists of a status and an
// archived value. The gateway treats every request as if it came from a compromised process.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/archive.hpp"
#include "bulkhead/abi/core.h"
#include "compartment/approvals.hpp"
#include "compartment/status_archive.hpp"
#include "sources/snapshot.hpp"

namespace bulkhead::program {

enum class ServiceRequest : std::uint16_t {
  admit = 1,         // a descriptor -> BH_OK if its peer may send requests
  status,            // -> ServiceStatus
  reload,            // -> Reloaded
  list_connectors,   // -> ConnectorList
  add_connector,     // ServerEntry -> ConnectorItem
  remove_connector,  // std::string, the connector's ID -> ConnectorRemoved
  list_approvals,    // ApprovalWatch -> ApprovalList
  answer_approval,   // ApprovalAnswer -> nothing
  restart_server,    // std::string, the server's name -> Reloaded
  metrics_listener,  // -> nothing, with a descriptor if /metrics is served over TCP
  join,              // JoinRequest -> JoinAnswer; BH_E_DENIED if the profiles differ
  swap_plugin,       // PluginSwapRequest -> PluginSwapped
};

// A response. If the status is not BH_OK, the value is a Refusal.
struct ServiceAnswer {
  bh_status code = BH_OK;
  std::string value;
};
using ServiceReply = std::function<void(ServiceAnswer)>;
// Sends a request. `reply` is called once from the loop, immediately or later. It is not called if
// the gateway stops first.
using AskService = std::function<void(ServiceRequest, std::string value, ServiceReply reply)>;

// Limits on the communication between the two processes: the sizes in bytes of a request, of a
// frame and of all queued frames, and the number of requests that are waiting for a response.
inline constexpr std::uint64_t max_question_bytes = 2u << 20;
inline constexpr std::uint64_t max_service_frame_bytes = 16u << 20;
inline constexpr std::uint64_t max_service_queue_bytes = 32u << 20;
inline constexpr std::uint32_t max_service_questions = 32;

struct Refusal {
  std::string message;
  std::vector<std::string> mistakes;  // errors in the profile, which was not applied
  // For a rejected JoinRequest, the parts that differ (shared/profile_marks.hpp), and the time in
  // milliseconds since 1970 at which the gateway loaded its profile.
  std::vector<std::string> parts = {};
  std::uint64_t loaded_ms = 0;
};

struct ServiceStatus {
  ProcessFacts process;
  HostStatus host;
};

struct Reloaded {
  ApplyReport report;
  std::vector<std::string> notes;
  std::vector<std::pair<std::string, std::string>> not_connected;  // server, reason
};

struct ConnectorItem {
  std::string id, source, source_profile;
  bool editable = false;  // defined in the user layer
  std::string server;     // JSON object without credentials
};

struct ConnectorList {
  std::string profile_id;
  std::vector<ConnectorItem> servers;  // ordered by ID
};

// Replaces the file of a tools plugin, or restores the version before the last swap.
struct PluginSwapRequest {
  std::string id;    // of the instance
  std::string file;  // absolute path; empty: the file that the profile specifies
  bool rollback = false;
};

struct PluginSwapped {
  std::string id, plugin;  // the instance and the plugin's ID
  std::string from_version, from_sha256, to_version, to_sha256;
  std::uint64_t rollback_until_ms = 0;  // Unix time; 0 after a rollback
};

inline constexpr std::size_t mark_key_bytes = 32;
inline constexpr std::size_t max_marks = 8192;

// Sent by another program of this user that wants to use this gateway's servers; see
// shared/local_clients.hpp.
struct JoinRequest {
  std::string key;                           // the key of the hashes in `marks`
  std::map<std::string, std::string> marks;  // marks of the program's profile
};

// The message with which a gateway that is still starting answers a JoinRequest. The program sends
// the request again.
inline constexpr std::string_view gateway_is_starting = "it is starting";

// The error of a reload or a swap while the gateway is starting.
inline constexpr std::string_view still_starting =
    "the gateway is still starting; try again in a few seconds (`bulkhead status` shows its state)";

struct JoinAnswer {
  std::string path, token;  // of the socket for local clients
};

// Returns the path of the socket for local clients, which is derived from the path of the gateway's
// service socket.
inline std::string local_socket_path(std::string_view service_socket) {
  return std::string(service_socket.substr(0, service_socket.rfind(".sock"))) + ".clients";
}

struct ConnectorRemoved {
  std::string profile_id, id;
};

template <class T>
ServiceAnswer answer_with(const T &value) {
  return {BH_OK, to_bytes(value)};
}

// ---- serialization ---------------------------------------------------------------------------

template <class Ar>
void archive(Ar &ar, Refusal &v) {
  auto &[message, mistakes, parts, loaded_ms] = v;
  ar(message, mistakes, parts, loaded_ms);
}
inline ServiceAnswer refuse_with(bh_status code, std::string message,
                                 std::vector<std::string> mistakes = {}) {
  return {code, to_bytes(Refusal{std::move(message), std::move(mistakes)})};
}

template <class Ar>
void archive(Ar &ar, CompartmentStatus &v) {
  auto &[name, state, pid, restarts, in_force, missing, servers_missing, memory_bytes, descriptors,
         plugins] = v;
  ar(name, state, pid, restarts, in_force, missing, servers_missing, memory_bytes, descriptors,
     plugins);
}
template <class Ar>
void archive(Ar &ar, ProcessFacts &v) {
  auto &[version, command, config, log_file, socket, pid, uptime_ms, compartments, project] = v;
  ar(version, command, config, log_file, socket, pid, uptime_ms, compartments, project);
}
template <class Ar>
void archive(Ar &ar, ServiceStatus &v) {
  auto &[process, host] = v;
  ar(process, host);
}
template <class Ar>
void archive(Ar &ar, Reloaded &v) {
  auto &[report, notes, not_connected] = v;
  ar(report, notes, not_connected);
}
template <class Ar>
void archive(Ar &ar, ConnectorItem &v) {
  auto &[id, source, source_profile, editable, server] = v;
  ar(id, source, source_profile, editable, server);
}
template <class Ar>
void archive(Ar &ar, ConnectorList &v) {
  auto &[profile_id, servers] = v;
  ar(profile_id, servers);
}
template <class Ar>
void archive(Ar &ar, JoinRequest &v) {
  auto &[key, marks] = v;
  ar(key, marks);
}
template <class Ar>
void archive(Ar &ar, JoinAnswer &v) {
  auto &[path, token] = v;
  ar(path, token);
}
template <class Ar>
void archive(Ar &ar, PluginSwapRequest &v) {
  auto &[id, file, rollback] = v;
  ar(id, file, rollback);
}
template <class Ar>
void archive(Ar &ar, PluginSwapped &v) {
  auto &[id, plugin, from_version, from_sha256, to_version, to_sha256, rollback_until_ms] = v;
  ar(id, plugin, from_version, from_sha256, to_version, to_sha256, rollback_until_ms);
}
template <class Ar>
void archive(Ar &ar, ConnectorRemoved &v) {
  auto &[profile_id, id] = v;
  ar(profile_id, id);
}

}  // namespace bulkhead::program
