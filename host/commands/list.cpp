// Implements `tools`, `resources` and `prompts`, which list the items that servers offer.
#include <algorithm>
#include <initializer_list>
#include <memory>
#include <optional>

#include "bulkhead/cpp/json.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/text.hpp"
#include "gateway/local_session.hpp"
#include "gateway/run_host.hpp"
#include "mcp/scan.hpp"
#include "service/control_client.hpp"
#include "shared/joined_wire.hpp"
#include "sources/profile_source.hpp"
#include "sources/snapshot.hpp"

namespace bulkhead::program {
namespace {

using bh::json::member_text;

struct ListKind {
  std::string_view method, key, name_member;
};

struct Listed {
  ListKind kind;
  std::vector<std::string> items;
};

// Returns the items as JSON, followed by the servers' protocol revisions under "servers".
std::string as_json(const std::vector<Listed> &lists, const HostStatus &status) {
  std::string out = "{";
  for (const auto &list : lists) {
    if (out.size() > 1) out += ",";
    bh::json::append_quoted(&out, list.kind.key);
    out += ":[";
    for (std::size_t i = 0; i < list.items.size(); ++i) out += (i == 0 ? "" : ",") + list.items[i];
    out += "]";
  }
  out += R"(,"servers":[)";
  for (const ServerStatus &server : status.servers) {
    out += out.ends_with('[') ? "{" : ",{";
    bh::json::append_member(&out, "name", server.name);
    bh::json::append_member(&out, "protocol", server.protocol);
    out += '}';
  }
  return out + "]}\n";
}

std::string as_table(const std::vector<Listed> &lists) {
  std::string out;
  for (const auto &list : lists) {
    Table table({"NAME", "DESCRIPTION"});
    for (const auto &item : list.items) {
      std::string what = member_text(item, "description");
      if (what.empty()) what = member_text(item, "title");
      table.add({printable(member_text(item, list.kind.name_member)),
                 first_line(printable(what, true), 100)});
    }
    if (!table.empty()) out += table.str();
  }
  return out;
}

std::nullopt_t complained(std::string_view text) {
  complain(text);
  return std::nullopt;
}

struct Unready {
  bool any = false;  // at least one server is not ready
  bool all = true;   // no server is ready
};

// Prints the servers that are not ready, on standard error.
Unready report_unready(const HostStatus &status) {
  Unready out;
  for (const auto &server : status.servers) {
    if (server.state == ServerState::ready || server.state == ServerState::idle) {
      out.all = false;
      continue;
    }
    // A server is not reported if the profile disables it, but it is reported if it is not
    // approved.
    if (server.state == ServerState::disabled && server.reason.empty()) continue;
    out.any = true;
    complain("server " + server.name + ": " + std::string(to_string(server.state)) +
             (server.reason.empty() ? "" : ": " + server.reason));
  }
  for (const auto &collision : status.collisions) complain("not offered: " + collision);
  out.all = out.all && out.any;
  if (out.all) complain("no server is available");
  return out;
}

// Returns the lists. On error, prints the error and returns nullopt.
std::optional<std::vector<Listed>> all_lists(LocalSession &session,
                                             std::initializer_list<ListKind> asked) {
  if (auto opened = session.open(); !opened) return complained(opened.error().text);
  std::vector<Listed> lists;
  for (const ListKind &kind : asked) {
    auto items = session.list(kind.method, kind.key);
    // -32601 means that no server supports this kind of item, or that the profile does not expose
    // it.
    if (!items && mcp::member(items.error().error_json, "code") == "-32601") items.emplace();
    if (!items) return complained(items.error().text);
    lists.push_back({kind, std::move(*items)});
  }
  return lists;
}

bool print(const std::vector<Listed> &lists, const HostStatus &status, bool json) {
  return write_stdout(json ? as_json(lists, status) : as_table(lists));
}

int list_of_gateway(const RunningGateway &gateway, const Arguments &arguments, const Limits &limits,
                    std::initializer_list<ListKind> asked) {
  LocalSession session(std::make_unique<JoinedWire>(gateway, limits.message_bytes));
  const auto lists = all_lists(session, asked);
  if (!lists) return exit_failed;
  const auto status = ask_gateway(gateway.socket, "GET", "/status", status_wait_ms);
  const HostStatus servers = status ? servers_in_snapshot(status->answer) : HostStatus{};
  const bool failed = status && report_unready(servers).all;
  return print(*lists, servers, arguments.json) && !failed ? exit_ok : exit_failed;
}

int list_all(ShortRun &run, const Arguments &arguments, std::initializer_list<ListKind> asked,
             const std::vector<std::string> &notes) {
  run.wait_settled();
  LocalSession session(run.host());
  const auto lists = all_lists(session, asked);
  if (!lists) return exit_failed;
  const Unready unready = report_unready(run.host().status());
  const bool failed = unready.all || (unready.any && !arguments.server.empty());
  if (run.host().status().servers.empty()) {
    for (const std::string &note : notes) complain(note);
  }
  return print(*lists, run.host().status(), arguments.json) && !failed ? exit_ok : exit_failed;
}

int run_list(const Arguments &arguments, std::initializer_list<ListKind> asked) {
  auto loaded = load_checked(arguments, Transports::none);
  if (!loaded) return report_config_errors(loaded.error());
  if (!arguments.server.empty()) {
    const auto names = ShortRun::server_names(loaded->profile);
    if (std::find(names.begin(), names.end(), arguments.server) == names.end()) {
      std::string text = "no server is named " + arguments.server + "; configured servers:";
      for (const auto &name : names) text += " " + name;
      return complain(text, exit_usage);
    }
    ShortRun::keep_only(loaded->profile, arguments.server);
  }
  if (arguments.server.empty()) {
    if (auto gateway = gateway_to_use(arguments, loaded->profile)) {
      return list_of_gateway(*gateway, arguments, loaded->profile.limits, asked);
    }
  }
  const std::vector<std::string> notes = loaded->profile.notes;
  ShortRun run(arguments);
  if (auto started = run.start(std::move(loaded->profile)); !started) {
    return complain(started.error().text);
  }
  return list_all(run, arguments, asked, notes);
}

}  // namespace

int run_tools(const Arguments &arguments) {
  return run_list(arguments, {{"tools/list", "tools", "name"}});
}
int run_prompts(const Arguments &arguments) {
  return run_list(arguments, {{"prompts/list", "prompts", "name"}});
}
int run_resources(const Arguments &arguments) {
  return run_list(arguments, {{"resources/list", "resources", "uri"},
                              {"resources/templates/list", "resourceTemplates", "uriTemplate"}});
}

}  // namespace bulkhead::program
