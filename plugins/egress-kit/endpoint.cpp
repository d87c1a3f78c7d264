#include "egress-kit/endpoint.hpp"

#include <bulkhead/cpp/text.hpp>
#include <bulkhead/cpp/url.hpp>

#include <arpa/inet.h>
#include <sys/un.h>

#include <algorithm>

#include "egress-kit/config_values.hpp"

namespace egress {
namespace {

constexpr std::string_view https = "https://", http = "http://";

bool has_control(std::string_view s) {
  return std::any_of(s.begin(), s.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u < 0x20 || u == 0x7f;
  });
}

std::string bad_url(std::string_view url, bool by_socket) {
  const bool plain = url.starts_with(http);
  if (url.size() > Endpoint::max_url || (!plain && !url.starts_with(https))) {
    return "url: must begin with https://, or http:// for this machine";
  }
  const auto parts = bh::split_url(url);
  if (!parts || parts->host.empty() || has_control(url) ||
      url.find(' ') != std::string_view::npos) {
    return "url: the host is missing or malformed, or the URL contains a space or a control "
           "character";
  }
  if (url.find('#') != std::string_view::npos) {
    return "url: contains a fragment ('#'), which is never sent; remove it";
  }
  if (parts->has_credentials) {
    return "url: contains a user name; put credentials in headers";
  }
  if (by_socket && !plain) return "url: must begin with http:// if socket is set";
  if (plain && !by_socket && parts->host != "localhost" && !is_loopback_address(parts->host)) {
    return "url: http:// is allowed only for this machine (127.0.0.1, [::1], localhost); use "
           "https://";
  }
  return {};
}

std::string bad_header(std::string_view name, std::string_view value) {
  const auto in_token = [](char c) {
    return bh::is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
  };
  const bool token = !name.empty() && std::all_of(name.begin(), name.end(), in_token);
  if (!token || name.size() > 128) return "headers: a name is malformed";
  const std::string low = bh::lowered(name);
  for (const std::string_view ours :
       {"content-type", "content-length", "host", "connection", "transfer-encoding", "expect"}) {
    if (low == ours) return "headers: " + low + " cannot be set here";
  }
  if (value.size() > Endpoint::max_header_bytes || has_control(value)) {
    return "headers: the value of " + std::string(name) + " is malformed";
  }
  return {};
}

std::string read_headers(const rapidjson::Value &value, Endpoint *out) {
  if (!value.IsObject() || value.MemberCount() > Endpoint::max_headers) {
    return "headers: must be a table of at most 32 strings";
  }
  out->headers.clear();
  for (const auto &each : value.GetObject()) {
    if (!each.value.IsString()) return "headers: values must be strings";
    const std::string_view name = text_of(each.name), text = text_of(each.value);
    if (std::string bad = bad_header(name, text); !bad.empty()) return bad;
    out->headers.emplace_back(name, text);
  }
  return {};
}

std::string read_socket(const rapidjson::Value &value, Endpoint *out) {
  const std::string_view path = value.IsString() ? text_of(value) : std::string_view();
  if (!path.starts_with('/') || path.size() >= sizeof(sockaddr_un::sun_path) || has_control(path)) {
    return "socket: must be the absolute path of a Unix socket, at most 107 bytes long";
  }
  out->socket = path;
  return {};
}

}  // namespace

bool is_loopback_address(std::string_view address) {
  const std::string text(address);
  in_addr v4{};
  if (::inet_pton(AF_INET, text.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (::inet_pton(AF_INET6, text.c_str(), &v6) != 1) return false;
  if (IN6_IS_ADDR_V4MAPPED(&v6)) return v6.s6_addr[12] == 127;
  return IN6_IS_ADDR_LOOPBACK(&v6);
}

std::string Endpoint::shown() const {
  if (!socket.empty()) return "unix:" + socket;
  return url.substr(0, url.find_first_of("/?#", url.find("//") + 2));
}

bool endpoint_key(std::string_view key) {
  return key == "url" || key == "socket" || key == "headers" || key == "timeout_ms";
}

std::string read_endpoint(const rapidjson::Value &config, Endpoint *out) {
  if (const auto at = config.FindMember("socket"); at != config.MemberEnd()) {
    if (std::string bad = read_socket(at->value, out); !bad.empty()) return bad;
  }
  const auto url = config.FindMember("url");
  if (url == config.MemberEnd() || !url->value.IsString()) {
    return "url: the address of the server is required";
  }
  out->url = text_of(url->value);
  if (std::string bad = bad_url(out->url, !out->socket.empty()); !bad.empty()) return bad;
  out->loopback = out->url.starts_with(http);
  if (const auto at = config.FindMember("headers"); at != config.MemberEnd()) {
    if (std::string bad = read_headers(at->value, out); !bad.empty()) return bad;
  }
  if (const auto at = config.FindMember("timeout_ms"); at != config.MemberEnd()) {
    const bool fits = at->value.IsUint64() && at->value.GetUint64() >= Endpoint::min_timeout_ms &&
                      at->value.GetUint64() <= Endpoint::max_timeout_ms;
    if (!fits) return "timeout_ms: must be from 10 to 60000";
    out->timeout_ms = at->value.GetUint64();
  }
  return {};
}

}  // namespace egress
