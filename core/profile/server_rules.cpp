// Validates server values: keys of other programs, types, headers and URLs.
#include <algorithm>
#include <charconv>

#include "bulkhead/cpp/text.hpp"
#include "profile/server.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kIgnored[] = {
    "alwaysAllow",
    "autoApprove",
    "trust",
    "description",
    "icon",
    "iconUrl",
    "gallery",
    "version",
    "dev",
    "name",
    "displayName",
    "display_name",
    "title",
    "note",
    "notes",
    "comment",
    "_comment",
    "$comment",
    "_meta",
    "source",
    "vendor",
    "homepage",
    "repository",
    "tags",
    "category",
    "oauth",
    "auth",
    "sandboxEnabled",
    "authProviderType",
    "scopes",
    "required",
    "startup",
    "isActive",
    "capabilities",
};

// Headers that the gateway sets or that belong to the connection. If they were configured, framing
// or sessions would break.
constexpr std::string_view kReservedHeaders[] = {
    "accept",     "mcp-session-id", "last-event-id",
    "host",       "content-length", "transfer-encoding",
    "connection", "content-type",   "mcp-protocol-version",
    "mcp-method", "mcp-name",       "upgrade",
    "te",         "trailer",        "keep-alive",
    "expect",
};

// Checks "host", "host:port" or "[v6]:port". Returns the reason why the text is invalid, or an
// empty string if it is valid.
std::string refused_authority(std::string_view authority) {
  if (authority.find('@') != std::string_view::npos)
    return "the url must not contain user:password@; use headers (Authorization)";
  std::string_view host = authority, port;
  if (authority.starts_with('[')) {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return "the url has no closing ']' after its host";
    host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    if (host.find_first_not_of("0123456789abcdefABCDEF:.%") != std::string_view::npos)
      return "the url's host in brackets is not an IPv6 address";
  } else if (const std::size_t colon = authority.find(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon);
  }
  if (host.empty()) return "the url has no host";
  if (port.empty()) return {};
  unsigned value = 0;
  const char *end = port.data() + port.size();
  const auto [stop, error] = std::from_chars(port.data() + 1, end, value);
  const bool good =
      port[0] == ':' && error == std::errc() && stop == end && value > 0 && value < 65'536;
  return good ? std::string() : "the url's port must be a number from 1 to 65535";
}

}  // namespace

bool ignored_server_key(std::string_view name) {
  return std::find(std::begin(kIgnored), std::end(kIgnored), name) != std::end(kIgnored);
}

std::string_view canonical_type(std::string_view type) {
  const std::string word = bh::lowered(type);
  if (word == "stdio" || word == "local") return "stdio";
  if (word == "sse") return "sse";
  for (const std::string_view http :
       {"http", "streamable-http", "streamablehttp", "streamable_http", "streamable"})
    if (word == http) return "http";
  return {};
}

bool reserved_header(std::string_view name) {
  const std::string word = bh::lowered(name);
  if (word.starts_with("mcp-param-")) return true;
  return std::find(std::begin(kReservedHeaders), std::end(kReservedHeaders), word) !=
         std::end(kReservedHeaders);
}

std::string refused_url(std::string_view url, bool any_scheme) {
  if (url.size() > 8192) return "the url is longer than 8192 bytes";
  for (const char c : url)
    if (c <= ' ' || c >= 0x7F || c == '"' || c == '<' || c == '>' || c == '\\')
      return "the url contains white space or a character that must be percent-encoded";
  const std::size_t scheme_end = url.find("://");
  const std::string scheme = bh::lowered(url.substr(0, scheme_end));
  if (scheme_end == std::string_view::npos || scheme.empty() ||
      (!any_scheme && scheme != "http" && scheme != "https"))
    return "the url must begin with http:// or https://";
  if (url.find('#') != std::string_view::npos) return "the url must not have a fragment ('#')";
  const std::string_view rest = url.substr(scheme_end + 3);
  return any_scheme ? std::string() : refused_authority(rest.substr(0, rest.find_first_of("/?")));
}

}  // namespace bulkhead::profiles
