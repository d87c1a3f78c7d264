// What `bulkhead status` shows of a running gateway, as one JSON object.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host.hpp"

namespace bulkhead::program {

// One compartment.
struct CompartmentStatus {
  std::string name;
  std::string state;  // "starting", "running", "waiting", "failed: ..."
  int pid = 0;
  std::uint32_t restarts = 0;
  std::vector<std::string> in_force, missing;  // of its confinement
  std::vector<std::string> servers_missing;    // of the sandboxes of servers that it has started
  std::uint64_t memory_bytes = 0;              // resident
  std::uint32_t descriptors = 0;
  std::vector<std::string> plugins;  // by name; of the endpoint: those that it has itself
};

// What the host does not know about its process.
struct ProcessFacts {
  std::string version, command, config, log_file, socket;
  std::int64_t pid = 0;
  std::uint64_t uptime_ms = 0;
  std::vector<CompartmentStatus> compartments;  // empty: there is one process
};

std::string snapshot_json(const ProcessFacts &facts, const HostStatus &status);

// The same for people: one heading line, a table of servers, what went wrong. `json` comes from
// another process: false if it is not such a snapshot.
bool describe_snapshot(std::string_view json, std::string *out);

// Rows of the table of servers, for the banner and for status.
std::string server_table(const std::vector<ServerStatus> &servers, std::string_view indent);

}  // namespace bulkhead::program
