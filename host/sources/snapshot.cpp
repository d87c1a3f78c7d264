#include "sources/snapshot.hpp"

#include <charconv>

#include "common/text.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

// Writes one flat JSON object or array; the caller nests them.
class JsonList {
 public:
  JsonList(std::string *out, char open, char close) : out_(out), close_(close) { *out_ += open; }
  ~JsonList() { *out_ += close_; }
  JsonList(const JsonList &) = delete;
  JsonList &operator=(const JsonList &) = delete;

  JsonList &text(std::string_view key, std::string_view value) {
    name(key);
    mcp::append_quoted(out_, value);
    return *this;
  }
  JsonList &number(std::string_view key, std::uint64_t value) {
    name(key);
    *out_ += std::to_string(value);
    return *this;
  }
  // Starts a member (or, if the key is empty, an element) whose value the caller appends.
  void name(std::string_view key) {
    if (!first_) *out_ += ',';
    first_ = false;
    if (key.empty()) return;
    mcp::append_quoted(out_, key);
    *out_ += ':';
  }

 private:
  std::string *out_;
  char close_;
  bool first_ = true;
};

void add_texts(std::string *out, const std::vector<std::string> &texts) {
  JsonList list(out, '[', ']');
  for (const auto &text : texts) list.text("", text);
}

void add_servers(std::string *out, const std::vector<ServerStatus> &servers) {
  JsonList list(out, '[', ']');
  for (const auto &server : servers) {
    list.name("");
    JsonList item(out, '{', '}');
    item.text("name", server.name).text("type", server.type);
    item.text("state", to_string(server.state)).text("reason", server.reason);
    item.number("tools", server.tools).number("resources", server.resources);
    item.number("prompts", server.prompts).number("restarts", server.restarts);
    item.number("in_flight", server.in_flight);
  }
}

void add_plugins(std::string *out, const std::vector<PluginStatus> &plugins) {
  JsonList list(out, '[', ']');
  for (const auto &plugin : plugins) {
    list.name("");
    JsonList item(out, '{', '}');
    item.text("id", plugin.id).text("plugin", plugin.plugin).text("version", plugin.version);
    item.text("state", plugin.state).text("path", plugin.path);
    item.number("generation", plugin.generation);
    item.name("provides");
    add_texts(out, plugin.provides);
  }
}

void add_policy(std::string *out, const PolicyMark &mark) {
  JsonList item(out, '{', '}');
  item.number("generation", mark.generation).number("rules", mark.rules);
  item.text("digest", mark.digest);
}

void add_compartments(std::string *out, const std::vector<CompartmentStatus> &compartments) {
  JsonList list(out, '[', ']');
  for (const auto &one : compartments) {
    list.name("");
    JsonList item(out, '{', '}');
    item.text("name", one.name).text("state", one.state);
    item.number("pid", static_cast<std::uint64_t>(one.pid)).number("restarts", one.restarts);
    item.number("memory_bytes", one.memory_bytes).number("descriptors", one.descriptors);
    item.name("plugins");
    add_texts(out, one.plugins);
    item.name("in_force");
    add_texts(out, one.in_force);
    item.name("missing");
    add_texts(out, one.missing);
    item.name("servers_missing");
    add_texts(out, one.servers_missing);
  }
}

// Parsing: members of another process's snapshot, as printable text.
std::string text_of(std::string_view object, std::string_view key, bool keep_lines = false) {
  const std::string_view value = mcp::member(object, key);
  if (value.empty() || value.front() != '"') return "";
  std::string scratch;
  return printable(mcp::unquote(value, &scratch), keep_lines);
}

std::uint64_t number_of(std::string_view object, std::string_view key) {
  const std::string_view value = mcp::member(object, key);
  std::uint64_t out = 0;
  std::from_chars(value.data(), value.data() + value.size(), out);
  return out;
}

template <class F>
void each(std::string_view array, F f) {
  if (array.empty() || array.front() != '[') return;
  mcp::for_each_item(array, &f, [](void *arg, std::string_view item) {
    (*static_cast<F *>(arg))(item);
    return true;
  });
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
    server.name = text_of(item, "name");
    server.type = text_of(item, "type");
    server.state = state_of(text_of(item, "state"));
    server.reason = text_of(item, "reason", true);
    server.tools = static_cast<std::uint32_t>(number_of(item, "tools"));
    server.resources = static_cast<std::uint32_t>(number_of(item, "resources"));
    server.prompts = static_cast<std::uint32_t>(number_of(item, "prompts"));
    server.restarts = static_cast<std::uint32_t>(number_of(item, "restarts"));
    server.in_flight = number_of(item, "in_flight");
    out.push_back(std::move(server));
  });
  return out;
}

std::string count(std::uint64_t n) {
  return n == 0 ? "" : std::to_string(n);
}

}  // namespace

std::string snapshot_json(const ProcessFacts &facts, const HostStatus &status) {
  std::string out;
  {
    JsonList top(&out, '{', '}');
    top.text("version", facts.version).text("command", facts.command);
    top.number("pid", static_cast<std::uint64_t>(facts.pid)).number("uptime_ms", facts.uptime_ms);
    top.text("config", facts.config).text("log", facts.log_file);
    top.text("socket", facts.socket);
    top.number("sessions", status.sessions).number("in_flight", status.in_flight);
    top.number("calls", status.calls);
    top.name("endpoints");
    add_texts(&out, status.endpoints);
    top.name("servers");
    add_servers(&out, status.servers);
    top.name("compartments");
    add_compartments(&out, facts.compartments);
    top.name("plugins");
    add_plugins(&out, status.plugins);
    top.name("collisions");
    add_texts(&out, status.collisions);
    top.name("servers_missing");
    add_texts(&out, status.servers_missing);
    top.name("policy");
    add_policy(&out, status.policy_mark);
    top.name("counters");
    JsonList counters(&out, '{', '}');
    for (const auto &[name, value] : status.counters) counters.number(name, value);
  }
  return out;
}

std::string server_table(const std::vector<ServerStatus> &servers, std::string_view indent) {
  Table table(
      {"SERVER", "TYPE", "STATE", ">TOOLS", ">RESOURCES", ">PROMPTS", ">RESTARTS", "REASON"});
  for (const auto &server : servers) {
    const bool ready = server.state == ServerState::ready;
    // An idle server shows the tools of its last run, if they are known.
    const bool known = ready || (server.state == ServerState::idle && server.tools != 0);
    table.add({printable(server.name), printable(server.type), std::string(to_string(server.state)),
               known ? std::to_string(server.tools) : "-", count(server.resources),
               count(server.prompts), count(server.restarts),
               ready ? "" : first_line(printable(server.reason, true), 160)});
  }
  return table.empty() ? "" : table.str(indent);
}

namespace {

std::string joined(std::string_view array) {
  std::string out, scratch;
  each(array, [&](std::string_view item) {
    out += (out.empty() ? "" : " ") + printable(mcp::unquote(item, &scratch));
  });
  return out;
}

std::string compartment_table(std::string_view json) {
  Table table({"COMPARTMENT", "STATE", ">PID", ">RESTARTS", ">MEMORY", ">FILES", "CONFINED BY"});
  bool any = false;
  std::string missing;
  each(mcp::member(json, "compartments"), [&](std::string_view item) {
    any = true;
    const std::uint64_t pid = number_of(item, "pid");
    table.add({text_of(item, "name"), text_of(item, "state"), pid == 0 ? "-" : std::to_string(pid),
               count(static_cast<std::uint32_t>(number_of(item, "restarts"))),
               std::to_string(number_of(item, "memory_bytes") >> 20) + " MiB",
               count(static_cast<std::uint32_t>(number_of(item, "descriptors"))),
               joined(mcp::member(item, "in_force"))});
    if (const std::string lacks = joined(mcp::member(item, "missing")); !lacks.empty()) {
      missing += "  not enforced in " + text_of(item, "name") + ": " + lacks + "\n";
    }
    if (const std::string lacks = joined(mcp::member(item, "servers_missing")); !lacks.empty()) {
      missing += "  not enforced for servers of " + text_of(item, "name") + ": " + lacks + "\n";
    }
  });
  return any ? table.str("  ") + missing : "";
}

// For example "  policy: 3 rules in force, generation 2".
std::string policy_line(std::string_view policy) {
  const std::uint64_t generation = number_of(policy, "generation");
  if (generation == 0) return "";
  const std::uint64_t rules = number_of(policy, "rules");
  return "  policy: " + std::to_string(rules) + (rules == 1 ? " rule" : " rules") +
         " in force, generation " + std::to_string(generation) + "\n";
}

// The counters of telemetry plugins, named as telemetry-sqlite does: "records: 12 written, 3 lost".
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
      const std::uint64_t n = number_of(counters, id + what);
      if (n > 0) out += ", " + std::to_string(n) + word;
    };
    more(".records_spilled", " spilled");
    more(".records_lost", " lost");
    more(".write_errors", " failed writes");
    out += "\n";
  };
  mcp::for_each_member(counters, &each_counter,
                       [](void *arg, std::string_view key, std::string_view value) {
                         (*static_cast<decltype(each_counter) *>(arg))(key, value);
                         return true;
                       });
  const std::uint64_t dropped = number_of(counters, "dropped_records");
  if (dropped > 0)
    out += "  " + std::to_string(dropped) +
           " records were dropped: no telemetry plugin accepted them\n";
  const std::uint64_t refused = number_of(counters, "refused_unrecorded");
  if (refused > 0) {
    out += "  " + std::to_string(refused) +
           " requests were rejected because they could not be recorded\n";
  }
  return out;
}

}  // namespace

bool describe_snapshot(std::string_view json, std::string *out) {
  if (!mcp::valid_json(json) || mcp::member(json, "pid").empty()) return false;
  std::string endpoints;
  each(mcp::member(json, "endpoints"), [&](std::string_view item) {
    std::string scratch;
    endpoints += "  " + printable(mcp::unquote(item, &scratch));
  });
  *out += "bulkhead " + text_of(json, "version") + " " + text_of(json, "command") + "  pid " +
          std::to_string(number_of(json, "pid")) + endpoints + "\n";
  *out += "  up " + duration(number_of(json, "uptime_ms")) + ", " +
          std::to_string(number_of(json, "sessions")) + " sessions, " +
          std::to_string(number_of(json, "calls")) + " calls (" +
          std::to_string(number_of(json, "in_flight")) + " in flight)\n";
  const std::string config = text_of(json, "config");
  *out += "  config " + (config.empty() ? "none" : config) + ", log " + text_of(json, "log") + "\n";
  const std::string socket = text_of(json, "socket");
  if (!socket.empty()) *out += "  service socket " + socket + "\n";
  *out += policy_line(mcp::member(json, "policy"));
  *out += server_table(servers_of(json), "  ") + compartment_table(json);
  if (const std::string lacks = joined(mcp::member(json, "servers_missing")); !lacks.empty()) {
    *out += "  not enforced for servers: " + lacks + "\n";
  }
  *out += record_lines(mcp::member(json, "counters"));
  each(mcp::member(json, "collisions"), [&](std::string_view item) {
    std::string scratch;
    *out += "  not offered: " + printable(mcp::unquote(item, &scratch)) + "\n";
  });
  each(mcp::member(json, "plugins"), [&](std::string_view item) {
    const std::string state = text_of(item, "state");
    if (state.starts_with("failed"))
      *out += "  plugin " + text_of(item, "id") + ": " + state + "\n";
  });
  return true;
}

}  // namespace bulkhead::program
