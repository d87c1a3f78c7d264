// reload: running gateways read their configuration again.
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "service/control_client.hpp"

namespace bulkhead::program {
namespace {

std::string text_of(std::string_view value) {
  std::string scratch;
  return value.starts_with('"') ? printable(mcp::unquote(value, &scratch)) : "";
}

// "  added: a, b" for a member that is an array of texts, or of objects with a name and a reason.
void add_line(std::string_view json, std::string_view member, std::string_view what,
              std::string *out) {
  std::string line;
  const std::string_view array = mcp::member(json, member);
  if (!array.starts_with('[')) return;
  mcp::for_each_item(array, &line, [](void *arg, std::string_view item) {
    auto &text = *static_cast<std::string *>(arg);
    if (!text.empty()) text += ", ";
    text += item.starts_with('{') ? text_of(mcp::member(item, "name")) + " (" +
                                        text_of(mcp::member(item, "reason")) + ")"
                                  : text_of(item);
    return true;
  });
  if (!line.empty()) *out += "  " + std::string(what) + ": " + line + "\n";
}

std::string describe(const FoundGateway &gateway) {
  const std::string_view json = gateway.answer;
  std::string out;
  if (gateway.status == 200) {
    out = gateway.socket + ": reloaded\n";
    add_line(json, "added", "added", &out);
    add_line(json, "changed", "changed", &out);
    add_line(json, "adjusted", "changed without a new connection", &out);
    add_line(json, "removed", "removed", &out);
    add_line(json, "not_connected", "not connected", &out);
    add_line(json, "needs_restart", "not changed", &out);
    return out;
  }
  out = gateway.socket + ": " + text_of(mcp::member(json, "message")) +
        text_of(mcp::member(json, "error")) + "\n";
  const std::string_view failures = mcp::member(json, "failures");
  if (!failures.starts_with('[')) return out;
  mcp::for_each_item(failures, &out, [](void *arg, std::string_view item) {
    *static_cast<std::string *>(arg) += "  " + text_of(mcp::member(item, "message")) + "\n";
    return true;
  });
  return out;
}

}  // namespace

int run_reload(const Arguments &arguments) {
  const auto found = ask_gateways(control_dirs(), "POST", "/reload-config", reload_wait_ms);
  if (found.empty()) {
    return complain("no gateway is running; `bulkhead serve` starts one", exit_not_running);
  }
  bool good = true;
  std::string text, json;
  for (const FoundGateway &gateway : found) {
    if (!gateway.error.empty() || !mcp::valid_json(gateway.answer)) {
      complain(gateway.socket + ": " +
               (gateway.error.empty() ? "answers something else" : gateway.error));
      good = false;
      continue;
    }
    good = good && gateway.status == 200;
    json += (json.empty() ? "" : ",") + gateway.answer;
    text += describe(gateway);
  }
  const bool written = write_stdout(arguments.json ? "{\"gateways\":[" + json + "]}\n" : text);
  return written && good ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
