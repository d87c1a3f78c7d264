// The state of a running gateway as one JSON object, for `bulkhead status`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host.hpp"

namespace bulkhead::program {

struct CompartmentStatus {
  std::string name;
  std::string state;  // "starting", "running", "waiting", "failed: ..."
  int pid = 0;
  std::uint32_t restarts = 0;
  std::vector<std::string> in_force, missing;  // parts of its confinement
  // Parts missing in the sandboxes of the servers that this compartment started.
  std::vector<std::string> servers_missing;
  std::uint64_t memory_bytes = 0;  // resident
  std::uint32_t descriptors = 0;
  std::vector<std::string> plugins;  // names; for the endpoint, the plugins in its process
};

// Facts about the process that the host does not know.
struct ProcessFacts {
  std::string version, command, config, log_file, socket;
  std::int64_t pid = 0;
  std::uint64_t uptime_ms = 0;
  std::vector<CompartmentStatus> compartments;  // empty for a single process
};

std::string snapshot_json(const ProcessFacts &facts, const HostStatus &status);

// Returns only the servers and collisions from the JSON of another process, as printable text.
HostStatus servers_in_snapshot(std::string_view json);

// Formats the state for the user: the gateway, its servers, and every failure. With `verbose`, also
// the compartments and their confinement. `json` comes from another process. Returns false if it is
// not a snapshot.
bool describe_snapshot(std::string_view json, bool verbose, std::string *out);

// Describes tools that differ from their pins; empty if there are none.
std::string unapproved_note(const ServerStatus &server);

// Formats the table of servers for the banner and for status.
std::string server_table(const std::vector<ServerStatus> &servers, std::string_view indent);

}  // namespace bulkhead::program
