#include "gateway/banner.hpp"

#include "bulkhead/cpp/json_writer.hpp"
#include "common/paths.hpp"
#include "common/text.hpp"
#include "mcp/scan.hpp"
#include "sources/snapshot.hpp"

namespace bulkhead::program {
namespace {

std::string paste_blocks(const std::string &url, const BannerFacts &facts) {
  // The token is not printed, because terminal output may be recorded and shared. The printed shell
  // command reads the token from its file.
  const std::string value = facts.token_file.empty() ? "TOKEN" : "$(cat " + facts.token_file + ")";
  const std::string shell =
      facts.needs_token ? " --header \"Authorization: Bearer " + value + "\"" : "";
  const std::string headers =
      facts.needs_token ? R"(, "headers": { "Authorization": "Bearer TOKEN" })" : "";
  const auto block = [&](const char *client, const char *file, const std::string &opening) {
    return "  " + std::string(client) + file + "\n                { " + opening +
           bh::json::quoted(url) + headers + " } } }\n";
  };
  std::string out = "Connect a client\n";
  out += "  Claude Code   claude mcp add --transport http bulkhead " + url + shell + "\n";
  out += block("VS Code       ", ".vscode/mcp.json",
               R"("servers": { "bulkhead": { "type": "http", "url": )");
  out += block("Cursor        ", "~/.cursor/mcp.json", R"("mcpServers": { "bulkhead": { "url": )");
  out += block("Gemini CLI    ", "~/.gemini/settings.json",
               R"("mcpServers": { "bulkhead": { "httpUrl": )");
  if (facts.needs_token) {
    out += facts.token_file.empty()
               ? "  TOKEN is the token in the configuration.\n"
               : "  TOKEN is the content of " + tilde(facts.token_file) + ".\n";
  }
  return out;
}

// A wildcard address stands for all addresses of the machine. It is shown to clients as a loopback
// address, because they cannot connect to a wildcard address.
struct Wildcard {
  std::string_view listened, connected;
};
constexpr Wildcard wildcards[] = {{"://0.0.0.0:", "://127.0.0.1:"}, {"://[::]:", "://[::1]:"}};

std::string client_url(const std::string &url) {
  for (const auto &[listened, connected] : wildcards) {
    const std::size_t at = url.find(listened);
    if (at == std::string::npos) continue;
    return std::string(url).replace(at, listened.size(), connected);
  }
  return url;
}

bool is_loopback(std::string_view url) {
  const std::size_t at = url.find("://");
  const std::string_view host = url.substr(at == std::string_view::npos ? 0 : at + 3);
  return host.starts_with("127.") || host.starts_with("[::1]") || host.starts_with("localhost");
}

}  // namespace

void find_token(std::string_view url, std::string_view config_json, const std::string &token_file,
                BannerFacts *facts) {
  const std::string_view configured = mcp::member(config_json, "token");
  const bool none = configured.empty() || configured == "\"\"";
  const bool kept = none ? !is_loopback(url) : configured == "\"auto\"";
  facts->needs_token = kept || !none;
  if (kept) facts->token_file = token_file;
}

std::string banner(const BannerFacts &facts) {
  std::string out = "bulkhead " + facts.version + "\n\n";
  std::string url;
  for (const auto &endpoint : facts.endpoints) {
    const std::string shown = printable(endpoint);
    out += "  Address   " + shown + "\n";
    if (url.empty() && shown.starts_with("http")) url = shown;
  }
  if (!facts.metrics.empty()) out += "  Metrics   http://" + facts.metrics + "/metrics\n";
  out += "  Config    " +
         (facts.config.empty()
              ? "none; using the builtin servers (`bulkhead import` finds your servers)"
              : printable(tilde(facts.config))) +
         "\n";
  if (!facts.project.empty()) out += "  Project   " + printable(tilde(facts.project)) + "\n";
  const std::string state = tilde(facts.state_dir);
  if (!facts.log_file.empty()) {
    out += "  Logs      " + tilde(facts.log_file) + "\n";
    out += "            " + state + "/log/servers/NAME.log: a server's stderr\n";
  }
  out += "  State     " + state + "\n\n";
  if (url.empty()) return out;
  const std::string reached = client_url(url);
  out += paste_blocks(reached, facts);
  if (reached != url)
    out += "  From another machine: replace the address with this machine's address.\n";
  out += '\n';
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
  std::size_t enabled = 0, ready = 0, idle = 0, failed = 0;
  std::string waiting;
  for (const auto &server : status.servers) {
    if (server.state == ServerState::disabled) continue;
    ++enabled;
    if (server.state == ServerState::ready) ++ready;
    if (server.state == ServerState::idle) ++idle;
    if (server.state == ServerState::failed) ++failed;
    if (server.state != ServerState::connecting) continue;
    waiting += (waiting.empty() ? "" : ", ") + printable(server.name);
  }
  std::string out =
      "connecting: " + std::to_string(ready) + " of " + std::to_string(enabled) + " ready";
  if (idle > 0) out += ", " + std::to_string(idle) + " idle";
  if (failed > 0) out += ", " + std::to_string(failed) + " failed";
  if (!waiting.empty()) out += ", waiting for " + waiting;
  return out;
}

}  // namespace bulkhead::program
