// Implements `plugin swap` and `plugin rollback`, which replace a tools plugin in running gateways.
#include <filesystem>
#include <system_error>

#include "bulkhead/cpp/json_reader.hpp"
#include "bulkhead/cpp/json_writer.hpp"
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "service/control_client.hpp"

namespace bulkhead::program {
namespace {

using bh::json::member_text;

// Longer than the gateway waits for a new version with the longest plugin_init_ms.
constexpr std::uint64_t swap_wait_ms = 900'000;

std::string version_text(std::string_view json, std::string_view name) {
  const std::string_view version = mcp::member(json, name);
  return printable(member_text(version, "version")) + " (sha256 " +
         printable(member_text(version, "sha256")).substr(0, 12) + ")";
}

std::string describe(const FoundGateway &gateway, const std::string &id) {
  const std::string_view json = gateway.answer;
  std::string out = gateway_name(gateway.socket) + ": ";
  if (gateway.status != 200) return out + printable(tilde(member_text(json, "error"))) + "\n";
  out += printable(member_text(json, "plugin")) + " " + version_text(json, "to") + " replaced " +
         version_text(json, "from") + "\n";
  if (!mcp::member(json, "rollback_until").empty()) {
    out += "  `bulkhead plugin rollback " + printable(id) +
           "` restores the old version within an hour\n";
  }
  return out;
}

int change(const Arguments &arguments, std::string_view path, const std::string &body) {
  if (arguments.name.find_first_of("/ \r\n") != std::string::npos) {
    return complain("\"" + arguments.name + "\" is not a valid instance name", exit_usage);
  }
  const auto found =
      ask_gateways(control_dirs(), "POST", std::string(path) + arguments.name, swap_wait_ms, body);
  if (found.empty()) {
    return complain("no gateway is running; `bulkhead serve` starts one", exit_not_running);
  }
  std::size_t changed = 0;
  std::string text, json;
  for (const FoundGateway &gateway : found) {
    if (!gateway.error.empty() || !mcp::valid_json(gateway.answer)) {
      complain(gateway_name(gateway.socket) + ": " +
               (gateway.error.empty() ? "the response is not from a gateway" : gateway.error));
      continue;
    }
    changed += gateway.status == 200 ? 1 : 0;
    json += (json.empty() ? "" : ",") + gateway.answer;
    text += describe(gateway, arguments.name);
  }
  if (!write_stdout(arguments.json ? "{\"gateways\":[" + json + "]}\n" : text)) return exit_failed;
  if (changed == found.size()) return exit_ok;
  return changed == 0 ? exit_failed : exit_in_part;
}

}  // namespace

int run_plugin_swap(const Arguments &arguments) {
  std::string body = "{";
  if (!arguments.plugin.file.empty()) {
    // The gateway has another working folder.
    std::error_code unknown;
    const auto path = std::filesystem::absolute(arguments.plugin.file, unknown);
    bh::json::append_member(&body, "file", resolved_path(path.string()));
  }
  return change(arguments, "/plugins/swap/", body + '}');
}

int run_plugin_rollback(const Arguments &arguments) {
  return change(arguments, "/plugins/rollback/", {});
}

}  // namespace bulkhead::program
