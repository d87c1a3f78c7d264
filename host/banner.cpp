#include "banner.hpp"

#include "mcp/scan.hpp"
#include "paths.hpp"
#include "snapshot.hpp"
#include "text.hpp"

namespace bulkhead::program {
namespace {

std::string quoted(std::string_view text) {
  std::string out;
  mcp::append_quoted(&out, text);
  return out;
}

std::string paste_blocks(const std::string &url, const std::string &token_file) {
  // A token is not printed: terminals are recorded and shared. The shell reads it from its file.
  const bool token = !token_file.empty();
  const std::string shell =
      token ? " --header \"Authorization: Bearer $(cat " + token_file + ")\"" : "";
  const std::string headers = token ? ", \"headers\": { \"Authorization\": \"Bearer TOKEN\" }" : "";
  std::string out = "Connect a client\n";
  out += "  Claude Code   claude mcp add --transport http bulkhead " + url + shell + "\n";
  out +=
      "  VS Code       .vscode/mcp.json\n                { \"servers\": { \"bulkhead\": { "
      "\"type\": \"http\", \"url\": " +
      quoted(url) + headers + " } } }\n";
  out +=
      "  Cursor        ~/.cursor/mcp.json\n                { \"mcpServers\": { \"bulkhead\": { "
      "\"url\": " +
      quoted(url) + headers + " } } }\n";
  out +=
      "  Gemini CLI    ~/.gemini/settings.json\n                { \"mcpServers\": { \"bulkhead\": "
      "{ \"httpUrl\": " +
      quoted(url) + headers + " } } }\n";
  if (token) out += "  TOKEN is what " + tilde(token_file) + " holds.\n";
  return out;
}

}  // namespace

std::string banner(const BannerFacts &facts) {
  std::string out = "bulkhead " + facts.version + "\n\n";
  std::string url;
  for (const auto &endpoint : facts.endpoints) {
    const std::string shown = printable(endpoint);
    out += "  Address   " + shown + "\n";
    if (url.empty() && shown.starts_with("http")) url = shown;
  }
  out += "  Config    " +
         (facts.config.empty()
              ? "none: the builtin servers http and files (bulkhead import finds yours)"
              : printable(tilde(facts.config))) +
         "\n";
  if (!facts.log_file.empty()) out += "  Log       " + tilde(facts.log_file) + "\n";
  out += "  State     " + tilde(facts.state_dir) + "\n\n";
  if (!url.empty()) out += paste_blocks(url, facts.token_file) + "\n";
  return out;
}

std::string servers_report(const HostStatus &status) {
  std::string out = server_table(status.servers, "");
  if (out.empty()) out = "No servers are configured.\n";
  for (const auto &collision : status.collisions) {
    out += "Not offered: " + printable(collision) + "\n";
  }
  return out;
}

std::string progress_line(const HostStatus &status) {
  std::size_t enabled = 0, ready = 0, failed = 0;
  std::string waiting;
  for (const auto &server : status.servers) {
    if (server.state == ServerState::disabled) continue;
    ++enabled;
    if (server.state == ServerState::ready) ++ready;
    if (server.state == ServerState::failed) ++failed;
    if (server.state != ServerState::connecting) continue;
    waiting += (waiting.empty() ? "" : ", ") + printable(server.name);
  }
  std::string out =
      "connecting: " + std::to_string(ready) + " of " + std::to_string(enabled) + " ready";
  if (failed > 0) out += ", " + std::to_string(failed) + " failed";
  if (!waiting.empty()) out += ", waiting for " + waiting;
  return out;
}

}  // namespace bulkhead::program
