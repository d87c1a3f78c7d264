#include "supervisor/egress.hpp"

#include <algorithm>
#include <string>

#include "bulkhead/cpp/json_reader.hpp"
#include "bulkhead/cpp/url.hpp"
#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

constexpr std::string_view callers[] = {"policy-http", "telemetry-otlp"};

}  // namespace

bool calls_out(std::string_view plugin) {
  return std::find(std::begin(callers), std::end(callers), plugin) != std::end(callers);
}

void allow_egress(std::string_view config, SlicePrivileges *may) {
  may->network = false;
  const std::string socket = bh::json::member_text(config, "socket");
  if (!socket.empty()) {
    may->dial.push_back(socket);
    return;
  }
  const std::string url = bh::json::member_text(config, "url");
  const auto parts = bh::split_url(url);
  const bool by_http = parts && (parts->scheme == "https" || parts->scheme == "http");
  // Elsewhere, a URL that has a colon but no port number ("https://host:") stands for the default
  // port of its scheme. Here, the port is a privilege, so such a URL is not accepted.
  const bool has_no_port = parts && parts->has_port && parts->port.empty();
  const std::uint16_t port = by_http && !has_no_port ? bh::port_of(*parts) : 0;
  if (port == 0) return;
  may->network = true;
  may->ports.push_back(port);
}

}  // namespace bulkhead::program
