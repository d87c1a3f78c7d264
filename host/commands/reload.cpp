// Implements `reload`, which makes running gateways reload their configuration.
#include "commands/reload_text.hpp"

#include "bulkhead/cpp/text.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "service/control_client.hpp"

namespace bulkhead::program {
namespace {

std::string shown_text(std::string_view value) {
  std::string scratch;
  return value.starts_with('"') ? printable(mcp::unquote(value, &scratch)) : "";
}

// Adds a line such as "  added: a, b" if the member is an array. Its items are strings, or objects
// with a name and a reason.
void add_line(std::string_view json, std::string_view member, std::string_view what,
              std::string *out) {
  std::string line;
  const std::string_view array = mcp::member(json, member);
  if (!array.starts_with('[')) return;
  mcp::for_each_item(array, [&](std::string_view item) {
    if (!line.empty()) line += ", ";
    line += item.starts_with('{') ? shown_text(mcp::member(item, "name")) + " (" +
                                        shown_text(mcp::member(item, "reason")) + ")"
                                  : shown_text(item);
  });
  if (!line.empty()) *out += "  " + std::string(what) + ": " + line + "\n";
}

// Adds a line such as "  note: ..." for each string in the array that `shown` selects.
void add_lines(std::string_view json, std::string_view member, std::string_view what,
               const ShownNotes &shown, std::string *out) {
  const std::string_view array = mcp::member(json, member);
  if (!array.starts_with('[')) return;
  mcp::for_each_item(array, [&](std::string_view item) {
    const std::string text = shown_text(item);
    const bool named =
        !shown.server.empty() && text.find("server \"" + shown.server + "\"") != text.npos;
    if (shown.all || named) out->append("  ").append(what).append(": ").append(tilde(text)) += '\n';
  });
}

enum class Extent : std::uint8_t { none, part, all };

// Returns how much of its new configuration the gateway has applied.
Extent extent_of(const FoundGateway &gateway) {
  if (gateway.status != 200) return Extent::none;
  const std::string applied = shown_text(mcp::member(gateway.answer, "applied"));
  return applied == "all" ? Extent::all : applied == "part" ? Extent::part : Extent::none;
}

// Adds a line such as "  policy: 3 rules added, in force (now 3 rules)". If the profile neither has
// nor had rules, their number is omitted: a policy of another kind has rules of its own.
void add_policy(std::string_view json, std::string *out) {
  const std::string_view policy = mcp::member(json, "policy");
  std::string line;
  add_line(policy, "changes", "policy", &line);
  if (line.empty()) return;
  line.pop_back();
  const std::string rules(mcp::member(policy, "rules"));
  bool counted = rules != "0";
  mcp::for_each_item(mcp::member(policy, "changes"), [&](std::string_view item) {
    counted = counted || (item.size() > 1 && bh::is_digit(item[1]));  // after the quote
  });
  *out += line + ", in force";
  if (counted) *out += " (now " + printable(rules) + (rules == "1" ? " rule)" : " rules)");
  *out += '\n';
}

}  // namespace

std::string describe_reload(const FoundGateway &gateway, const ShownNotes &notes) {
  const std::string_view json = gateway.answer;
  std::string out;
  if (gateway.status == 200) {
    const std::string message = shown_text(mcp::member(json, "message"));
    out = gateway_name(gateway.socket) + ": " + (message.empty() ? "reloaded" : message) + "\n";
    add_policy(json, &out);
    add_line(json, "added", "added", &out);
    add_line(json, "changed", "changed", &out);
    add_line(json, "adjusted", "changed without a new connection", &out);
    add_line(json, "removed", "removed", &out);
    add_line(json, "settings", "settings", &out);
    add_line(json, "files", "plugins", &out);
    add_line(json, "not_connected", "not connected", &out);
    add_line(json, "needs_restart", "not changed", &out);
    add_lines(json, "notes", "note", notes, &out);
    return out;
  }
  out = gateway_name(gateway.socket) + ": " + shown_text(mcp::member(json, "message")) +
        shown_text(mcp::member(json, "error")) + "\n";
  const std::string_view failures = mcp::member(json, "failures");
  if (!failures.starts_with('[')) return out;
  mcp::for_each_item(failures, [&](std::string_view item) {
    out += "  " + shown_text(mcp::member(item, "message")) + "\n";
  });
  return out;
}

namespace {

// Prints the responses. Returns an exit code that indicates whether all, some or none of the
// changes took effect.
int report(const Arguments &arguments, const std::vector<FoundGateway> &found,
           const ShownNotes &notes) {
  if (found.empty()) {
    return complain("no gateway is running; `bulkhead serve` starts one", exit_not_running);
  }
  std::size_t all = 0, none = 0;
  std::string text, json;
  for (const FoundGateway &gateway : found) {
    if (!gateway.error.empty() || !mcp::valid_json(gateway.answer)) {
      complain(gateway_name(gateway.socket) + ": " +
               (gateway.error.empty() ? "the response is not from a gateway" : gateway.error));
      ++none;
      continue;
    }
    const Extent extent = extent_of(gateway);
    all += extent == Extent::all ? 1 : 0;
    none += extent == Extent::none ? 1 : 0;
    json += (json.empty() ? "" : ",") + gateway.answer;
    text += describe_reload(gateway, notes);
  }
  if (!write_stdout(arguments.json ? "{\"gateways\":[" + json + "]}\n" : text)) return exit_failed;
  if (all == found.size()) return exit_ok;
  return none == found.size() ? exit_failed : exit_in_part;
}

}  // namespace

int run_reload(const Arguments &arguments) {
  return report(arguments, ask_gateways(control_dirs(), "POST", "/reload-config", reload_wait_ms),
                {});
}

int run_mcp_restart(const Arguments &arguments) {
  if (arguments.name.find_first_of("/ \r\n") != std::string::npos)
    return complain("\"" + arguments.name + "\" is not a valid server name", exit_usage);
  return report(
      arguments,
      ask_gateways(control_dirs(), "POST", "/mcp/restart/" + arguments.name, reload_wait_ms),
      {false, arguments.name});
}

}  // namespace bulkhead::program
