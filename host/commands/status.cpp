// Implements `status`, which shows this user's running gateways.
#include "command_line/commands.hpp"
#include "common/console.hpp"
#include "common/paths.hpp"
#include "mcp/scan.hpp"
#include "service/control_client.hpp"
#include "sources/snapshot.hpp"

namespace bulkhead::program {

int run_status(const Arguments &arguments) {
  const auto found = ask_gateways(control_dirs(), "GET", "/status", status_wait_ms);
  std::string text, json;
  std::size_t answered = 0;
  for (const auto &gateway : found) {
    std::string described;
    if (!gateway.error.empty() ||
        !describe_snapshot(gateway.answer, arguments.verbose, &described)) {
      complain(gateway_name(gateway.socket) + ": " +
               (gateway.error.empty() ? "the response is not from a gateway" : gateway.error));
      continue;
    }
    json += (answered == 0 ? "" : ",") + gateway.answer;
    text += (answered == 0 ? "" : "\n") + described;
    ++answered;
  }
  if (found.empty() && !arguments.json) {
    return complain("no gateway is running; `bulkhead serve` starts one", exit_not_running);
  }
  const bool written = write_stdout(arguments.json ? "{\"gateways\":[" + json + "]}\n" : text);
  if (found.empty()) return exit_not_running;
  return written && answered == found.size() ? exit_ok : exit_failed;
}

}  // namespace bulkhead::program
