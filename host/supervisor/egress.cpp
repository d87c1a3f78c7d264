#include "supervisor/egress.hpp"

#include <algorithm>
#include <charconv>
#include <string>

#include "mcp/scan.hpp"

namespace bulkhead::program {
namespace {

constexpr std::string_view callers[] = {"policy-http", "telemetry-otlp"};

std::string text_member(std::string_view config, std::string_view name) {
  std::string scratch;
  const std::string_view value = mcp::member(config, name);
  return value.starts_with('"') ? std::string(mcp::unquote(value, &scratch)) : std::string();
}

// Returns 0 if the URL has no usable port.
std::uint16_t port_of(std::string_view url) {
  const bool secure = url.starts_with("https://");
  if (!secure && !url.starts_with("http://")) return 0;
  url.remove_prefix(url.find("//") + 2);
  url = url.substr(0, url.find_first_of("/?#"));
  const std::size_t colon = url.rfind(':');
  const bool in_brackets =
      url.find(']', colon == std::string_view::npos ? 0 : colon) != std::string_view::npos;
  if (colon == std::string_view::npos || in_brackets) return secure ? 443 : 80;
  std::uint16_t port = 0;
  const std::string_view digits = url.substr(colon + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return error == std::errc() && end == digits.data() + digits.size() ? port : 0;
}

}  // namespace

bool calls_out(std::string_view plugin) {
  return std::find(std::begin(callers), std::end(callers), plugin) != std::end(callers);
}

void allow_egress(std::string_view config, SlicePrivileges *may) {
  may->network = false;
  const std::string socket = text_member(config, "socket");
  if (!socket.empty()) {
    may->dial.push_back(socket);
    return;
  }
  const std::uint16_t port = port_of(text_member(config, "url"));
  if (port == 0) return;
  may->network = true;
  may->ports.push_back(port);
}

}  // namespace bulkhead::program
