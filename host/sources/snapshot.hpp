// Writes the state of a running gateway as a JSON object (a snapshot), and formats snapshots for
// `bulkhead status`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host.hpp"

namespace bulkhead::program {

struct CompartmentStatus {
  std::string name;
  std::string state;  // "starting", "running", "draining", "waiting" or "failed: ..."
  int pid = 0;
  std::uint32_t restarts = 0;
  std::vector<std::string> in_force, missing;  // restrictions of this process
  // Restrictions that are not enforced in the sandboxes of the servers that this compartment
  // started.
  std::vector<std::string> servers_missing;
  std::uint64_t memory_bytes = 0;  // resident memory
  std::uint32_t descriptors = 0;
  // The names of the plugins in this compartment. The endpoint's list includes the plugins that run
  // in its process.
  std::vector<std::string> plugins;
};

// Facts about the gateway's process that the Host does not know.
struct ProcessFacts {
  std::string version, command, config, log_file, socket;
  std::int64_t pid = 0;
  std::uint64_t uptime_ms = 0;
  std::vector<CompartmentStatus> compartments;  // empty for a single process
  std::string project;                          // the project file; empty: there is none
};

std::string snapshot_json(const ProcessFacts &facts, const HostStatus &status);

// Extracts the servers and name collisions from the snapshot of another process. Their strings are
// made printable. All other members of the result keep their default values.
HostStatus servers_in_snapshot(std::string_view json);

// Formats a snapshot for the user: the gateway, its servers and all failures. If `verbose` is true,
// the service socket, the compartments and their confinement are included. `json` comes from
// another process; returns false if it is not a snapshot.
bool describe_snapshot(std::string_view json, bool verbose, std::string *out);

// Describes a server's tools that differ from their pins. Returns an empty string if there are
// none.
std::string unapproved_note(const ServerStatus &server);

// Formats the servers as a table, for the banner and for `bulkhead status`.
std::string server_table(const std::vector<ServerStatus> &servers, std::string_view indent);

}  // namespace bulkhead::program
