#include "sources/snapshot.hpp"

#include <charconv>

#include "bulkhead/cpp/json.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

using bh::json::Writer;

void add_servers(Writer &out, const std::vector<ServerStatus> &servers) {
  out.begin_array();
  for (const auto &server : servers) {
    out.begin_object().member("name", server.name).member("type", server.type);
    out.member("protocol", server.protocol);
    out.member("state", to_string(server.state)).member("reason", server.reason);
    out.member("tools", server.tools).member("resources", server.resources);
    out.member("prompts", server.prompts).member("restarts", server.restarts);
    out.member("in_flight", server.in_flight).member("connections", server.connections);
    out.member("requested_roots", server.requested_roots);
    out.member("unapproved_tools", server.unapproved_tools);
    out.member("unapproved_hidden", server.unapproved_hidden).end_object();
  }
  out.end_array();
}

void add_plugins(Writer &out, const std::vector<PluginStatus> &plugins) {
  out.begin_array();
  for (const auto &plugin : plugins) {
    out.begin_object().member("id", plugin.id).member("plugin", plugin.plugin);
    out.member("version", plugin.version).member("state", plugin.state);
    out.member("path", plugin.path).member("generation", plugin.generation);
    out.member("swapped", plugin.swapped).member("watched", plugin.watched);
    out.member("provides", plugin.provides).end_object();
  }
  out.end_array();
}

void add_clients(Writer &out, const std::vector<ClientStatus> &clients) {
  out.begin_array();
  for (const auto &client : clients) {
    out.begin_object().member("claimed_name", client.claimed_name);
    out.member("process_name", client.process_name).member("transport", client.transport);
    out.member("protocol", client.protocol)
        .member("sessions", client.sessions)
        .member("calls", client.calls)
        .end_object();
  }
  out.end_array();
}

void add_compartments(Writer &out, const std::vector<CompartmentStatus> &compartments) {
  out.begin_array();
  for (const auto &one : compartments) {
    out.begin_object().member("name", one.name).member("state", one.state);
    out.member("pid", one.pid).member("restarts", one.restarts);
    out.member("memory_bytes", one.memory_bytes).member("descriptors", one.descriptors);
    out.member("plugins", one.plugins).member("in_force", one.in_force);
    out.member("missing", one.missing).member("servers_missing", one.servers_missing);
    out.end_object();
  }
  out.end_array();
}

std::string member_shown(std::string_view object, std::string_view key, bool keep_lines = false) {
  return printable(bh::json::member_text(object, key), keep_lines);
}

std::uint64_t member_number(std::string_view object, std::string_view key) {
  std::uint64_t out = 0;
  bh::json::read_integer(bh::json::member(object, key), &out);
  return out;
}

template <class F>
void each(std::string_view array, F f) {
  if (array.empty() || array.front() != '[') return;
  mcp::for_each_item(array, f);
}

ServerState state_of(std::string_view name) {
  for (const auto state :
       {ServerState::ready, ServerState::idle, ServerState::failed, ServerState::disabled}) {
    if (to_string(state) == name) return state;
  }
  return ServerState::connecting;
}

std::vector<ServerStatus> servers_of(std::string_view json) {
  std::vector<ServerStatus> out;
  each(mcp::member(json, "servers"), [&](std::string_view item) {
    ServerStatus server;
    server.name = member_shown(item, "name");
    server.type = member_shown(item, "type");
    server.protocol = member_shown(item, "protocol");
    server.state = state_of(member_shown(item, "state"));
    server.reason = member_shown(item, "reason", true);
    server.tools = static_cast<std::uint32_t>(member_number(item, "tools"));
    server.resources = static_cast<std::uint32_t>(member_number(item, "resources"));
    server.prompts = static_cast<std::uint32_t>(member_number(item, "prompts"));
    server.restarts = static_cast<std::uint32_t>(member_number(item, "restarts"));
    server.in_flight = member_number(item, "in_flight");
    server.connections = static_cast<std::uint32_t>(member_number(item, "connections"));
    server.requested_roots = mcp::member(item, "requested_roots") == "true";
    server.unapproved_tools = static_cast<std::uint32_t>(member_number(item, "unapproved_tools"));
    server.unapproved_hidden = mcp::member(item, "unapproved_hidden") == "true";
    out.push_back(std::move(server));
  });
  return out;
}

std::string count(std::uint64_t n) {
  return n == 0 ? "" : std::to_string(n);
}

}  // namespace

std::string snapshot_json(const ProcessFacts &facts, const HostStatus &status) {
  std::string json;
  Writer out(&json);
  out.begin_object().member("version", facts.version).member("command", facts.command);
  out.member("pid", facts.pid).member("uptime_ms", facts.uptime_ms);
  out.member("config", facts.config).member("project", facts.project);
  out.member("log", facts.log_file);
  out.member("socket", facts.socket);
  out.member("sessions", status.sessions).member("in_flight", status.in_flight);
  out.member("calls", status.calls).member("endpoints", status.endpoints);
  add_clients(out.key("clients"), status.clients);
  add_servers(out.key("servers"), status.servers);
  add_compartments(out.key("compartments"), facts.compartments);
  add_plugins(out.key("plugins"), status.plugins);
  out.member("collisions", status.collisions);
  out.member("servers_missing", status.servers_missing);
  const PolicyMark &mark = status.policy_mark;
  out.key("policy").begin_object().member("generation", mark.generation);
  out.member("rules", mark.rules).member("digest", mark.digest).end_object();
  out.key("counters").begin_object();
  for (const auto &[name, value] : status.counters) out.member(name, value);
  out.end_object().end_object();
  return json;
}

std::string unapproved_note(const ServerStatus &server) {
  if (server.unapproved_tools == 0) return "";
  const bool one = server.unapproved_tools == 1;
  return counted(server.unapproved_tools, "tool") +
         (server.unapproved_hidden
              ? std::string(one ? " is" : " are") + " hidden until approved: `bulkhead pins`"
              : std::string(one ? " is" : " are") + " not approved: `bulkhead pins`");
}

namespace {

// Returns `out` with the notes about the server appended, separated by semicolons.
std::string with_notes(const ServerStatus &server, std::string out) {
  const auto add = [&out](const std::string &note) {
    if (!note.empty()) out += (out.empty() ? "" : "; ") + note;
  };
  add(unapproved_note(server));
  if (server.connections > 1) {
    add(std::to_string(server.connections) +
        (server.type == "stdio" ? " processes" : " connections"));
  }
  if (server.requested_roots) add("requests roots; roots is \"off\"");
  return out;
}

}  // namespace

std::string server_table(const std::vector<ServerStatus> &servers, std::string_view indent) {
  Table table({"SERVER", "TYPE", "STATE", ">TOOLS", ">RESOURCES", ">PROMPTS", ">RESTARTS",
               "PROTOCOL", "REASON"});
  for (const auto &server : servers) {
    const bool ready = server.state == ServerState::ready;
    // For an idle server, the number of tools from its last run is shown if it is known.
    const bool known = ready || (server.state == ServerState::idle && server.tools != 0);
    table.add({printable(server.name), printable(server.type), std::string(to_string(server.state)),
               known ? std::to_string(server.tools) : "-", count(server.resources),
               count(server.prompts), count(server.restarts), printable(server.protocol),
               with_notes(server, ready ? "" : first_line(printable(server.reason, true), 160))});
  }
  return table.empty() ? "" : table.str(indent);
}

namespace {

std::string shown_items(std::string_view array) {
  std::string out, scratch;
  each(array, [&](std::string_view item) {
    out += (out.empty() ? "" : " ") + printable(mcp::unquote(item, &scratch));
  });
  return out;
}

std::string compartment_table(std::string_view json) {
  Table table({"COMPARTMENT", "STATE", ">PID", ">RESTARTS", ">MEMORY", ">FILES", "CONFINED BY"});
  each(mcp::member(json, "compartments"), [&](std::string_view item) {
    const std::uint64_t pid = member_number(item, "pid");
    table.add({member_shown(item, "name"), member_shown(item, "state"),
               pid == 0 ? "-" : std::to_string(pid),
               count(static_cast<std::uint32_t>(member_number(item, "restarts"))),
               std::to_string(member_number(item, "memory_bytes") >> 20) + " MiB",
               count(static_cast<std::uint32_t>(member_number(item, "descriptors"))),
               shown_items(mcp::member(item, "in_force"))});
  });
  return table.empty() ? "" : table.str("  ");
}

std::string client_table(std::string_view json) {
  Table table({"CLIENT", "CLAIMED", "PROTOCOL", ">SESSIONS", ">CALLS"});
  each(mcp::member(json, "clients"), [&](std::string_view item) {
    const std::string process = member_shown(item, "process_name");
    table.add({first_line(process.empty() ? member_shown(item, "transport") : process, 40),
               first_line(member_shown(item, "claimed_name"), 40), member_shown(item, "protocol"),
               std::to_string(member_number(item, "sessions")),
               std::to_string(member_number(item, "calls"))});
  });
  return table.empty() ? "" : table.str("  ");
}

// Returns a line for each compartment or sandbox for which this system cannot enforce all
// restrictions.
std::string missing_lines(std::string_view json) {
  std::string out;
  const auto add = [&](const std::string &where, std::string_view names) {
    const std::string lacks = shown_items(names);
    if (!lacks.empty()) out += "  not enforced " + where + ": " + lacks + "\n";
  };
  each(mcp::member(json, "compartments"), [&](std::string_view item) {
    add("in " + member_shown(item, "name"), mcp::member(item, "missing"));
    add("for servers of " + member_shown(item, "name"), mcp::member(item, "servers_missing"));
  });
  add("for servers", mcp::member(json, "servers_missing"));
  return out;
}

std::string plugin_table(std::string_view json) {
  Table table({"PLUGIN", "VERSION", "STATE", "FILE"});
  each(mcp::member(json, "plugins"), [&](std::string_view item) {
    std::string version = member_shown(item, "version");
    if (mcp::member(item, "swapped") == "true") version += " (swapped)";
    if (mcp::member(item, "watched") == "true") version += " (watched)";
    const std::string path = member_shown(item, "path");
    table.add({member_shown(item, "id"), version, first_line(member_shown(item, "state"), 60),
               path.empty() ? member_shown(item, "plugin") : path});
  });
  return table.empty() ? "" : table.str("  ");
}

// Returns a line for each plugin whose file is not the profile's or is watched. Used without
// --verbose.
std::string swapped_lines(std::string_view json) {
  std::string out;
  each(mcp::member(json, "plugins"), [&](std::string_view item) {
    const bool watched = mcp::member(item, "watched") == "true";
    if (mcp::member(item, "swapped") != "true" && !watched) return;
    out += "  plugin " + member_shown(item, "id") + (watched ? ": watched" : ": swapped") +
           ", version " + member_shown(item, "version") + "\n";
  });
  return out;
}

// Returns a line for each compartment that is not running. Used without --verbose.
std::string stopped_lines(std::string_view json) {
  std::string out;
  each(mcp::member(json, "compartments"), [&](std::string_view item) {
    const std::string state = member_shown(item, "state");
    if (state == "running") return;
    out += "  compartment " + member_shown(item, "name") + ": " + state + "\n";
  });
  return out;
}

// Returns a line such as "  policy: 3 rules in force, generation 2" or "  policy: no rules in the
// profile, generation 1".
std::string policy_line(std::string_view policy) {
  const std::uint64_t generation = member_number(policy, "generation");
  if (generation == 0) return "";
  const std::uint64_t rules = member_number(policy, "rules");
  // A policy that does not use the profile's rules has other rules.
  const std::string what =
      rules == 0 ? "no rules in the profile" : counted(rules, "rule") + " in force";
  return "  policy: " + what + ", generation " + std::to_string(generation) + "\n";
}

// Returns a line such as "  records: 12 written, 3 lost" for each telemetry plugin that uses the
// same counter names as telemetry-sqlite, followed by lines about dropped records and about
// requests that were rejected because they could not be recorded.
std::string record_lines(std::string_view counters) {
  constexpr std::string_view written = ".records_written";
  std::string out;
  if (!counters.starts_with('{')) return out;
  auto each_counter = [&](std::string_view key, std::string_view value) {
    std::string scratch;
    const std::string name(mcp::unquote(key, &scratch));
    if (!name.ends_with(written)) return;
    const std::string id = name.substr(0, name.size() - written.size());
    out += "  " + printable(id) + ": " + printable(value) + " written";
    const auto more = [&](const char *what, const char *word) {
      const std::uint64_t n = member_number(counters, id + what);
      if (n > 0) out += ", " + std::to_string(n) + word;
    };
    more(".records_spilled", " spilled");
    more(".records_lost", " lost");
    more(".write_errors", " failed writes");
    out += "\n";
  };
  mcp::for_each_member(counters, each_counter);
  const std::uint64_t dropped = member_number(counters, "dropped_records");
  if (dropped > 0) {
    out += "  " + counted(dropped, "record") + (dropped == 1 ? " was" : " were") +
           " dropped: no telemetry plugin accepted " + (dropped == 1 ? "it\n" : "them\n");
  }
  const std::uint64_t refused = member_number(counters, "refused_unrecorded");
  if (refused > 0) {
    out += "  " + counted(refused, "request") + (refused == 1 ? " was" : " were") +
           " rejected because " + (refused == 1 ? "it" : "they") + " could not be recorded\n";
  }
  return out;
}

}  // namespace

HostStatus servers_in_snapshot(std::string_view json) {
  HostStatus out;
  if (!mcp::valid_json(json) || !json.starts_with('{')) return out;
  out.servers = servers_of(json);
  each(mcp::member(json, "collisions"), [&](std::string_view item) {
    std::string scratch;
    out.collisions.push_back(printable(mcp::unquote(item, &scratch)));
  });
  return out;
}

bool describe_snapshot(std::string_view json, bool verbose, std::string *out) {
  if (!mcp::valid_json(json) || mcp::member(json, "pid").empty()) return false;
  std::string endpoints;
  each(mcp::member(json, "endpoints"), [&](std::string_view item) {
    std::string scratch;
    endpoints += "  " + printable(mcp::unquote(item, &scratch));
  });
  *out += "bulkhead " + member_shown(json, "version") + " " + member_shown(json, "command") +
          "  pid " + std::to_string(member_number(json, "pid")) + endpoints + "\n";
  *out += "  up " + duration(member_number(json, "uptime_ms")) + ", " +
          counted(member_number(json, "sessions"), "session") + ", " +
          counted(member_number(json, "calls"), "call") + " (" +
          std::to_string(member_number(json, "in_flight")) + " in flight)\n";
  const std::string config = member_shown(json, "config");
  *out += "  config " + (config.empty() ? "none" : tilde(config)) + ", log " +
          tilde(member_shown(json, "log")) + "\n";
  const std::string socket = member_shown(json, "socket");
  if (verbose && !socket.empty()) *out += "  service socket " + socket + "\n";
  *out += policy_line(mcp::member(json, "policy"));
  *out += server_table(servers_of(json), "  ") + client_table(json);
  const std::string missing = missing_lines(json);
  if (verbose) {
    *out += plugin_table(json) + compartment_table(json) + missing;
  } else {
    *out += swapped_lines(json) + stopped_lines(json);
    if (!missing.empty()) {
      *out += "  some restrictions are not enforced: see `bulkhead status --verbose`\n";
    }
  }
  *out += record_lines(mcp::member(json, "counters"));
  each(mcp::member(json, "collisions"), [&](std::string_view item) {
    std::string scratch;
    *out += "  not offered: " + printable(mcp::unquote(item, &scratch)) + "\n";
  });
  each(mcp::member(json, "plugins"), [&](std::string_view item) {
    const std::string state = member_shown(item, "state");
    if (state.starts_with("failed"))
      *out += "  plugin " + member_shown(item, "id") + ": " + state + "\n";
  });
  return true;
}

}  // namespace bulkhead::program
