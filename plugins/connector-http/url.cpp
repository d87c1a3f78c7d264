#include "url.hpp"

#include <bulkhead/cpp/text.hpp>
#include <bulkhead/cpp/url.hpp>

#include <algorithm>
#include <vector>

namespace connector_http {
namespace {

constexpr std::size_t url_bytes_max = 8192;

std::optional<Url> refuse(std::string *why, const char *text) {
  if (why != nullptr) *why = text;
  return std::nullopt;
}

bool is_printable(std::string_view s) noexcept {
  return std::all_of(s.begin(), s.end(), [](char c) { return c > 0x20 && c < 0x7F && c != '\\'; });
}

bool host_bytes_ok(std::string_view host, bool v6) noexcept {
  if (host.empty() || host.size() > 253) return false;
  return std::all_of(host.begin(), host.end(), [v6](char c) {
    const char l = bh::lower(c);
    const bool name = (l >= 'a' && l <= 'z') || bh::is_digit(c) || c == '-' || c == '.';
    return v6 ? (l >= 'a' && l <= 'f') || bh::is_digit(c) || c == ':' || c == '.'
              : name || c == '_';
  });
}

bool read_authority(const bh::UrlParts &parts, Url *url, std::string *why) {
  if (parts.has_credentials) {
    refuse(why, "the URL contains a user name or password; put credentials in headers");
    return false;
  }
  if (!host_bytes_ok(parts.host, parts.in_brackets)) {
    return refuse(why, "the URL's host is missing or malformed"), false;
  }
  url->host = bh::lowered(parts.host);
  url->port = url->tls ? 443 : 80;
  if (!parts.port.empty()) url->port = bh::port_of(parts);
  if (url->port == 0) return refuse(why, "the URL's port is invalid"), false;
  return true;
}

std::string remove_dot_segments(std::string_view path) {
  std::vector<std::string_view> kept;
  bool trailing = false;
  std::size_t at = 1;
  while (at <= path.size()) {
    std::size_t slash = path.find('/', at);
    if (slash == std::string_view::npos) slash = path.size();
    const std::string_view segment = path.substr(at, slash - at);
    const bool last = slash == path.size();
    trailing = false;
    if (segment == "..") {
      if (!kept.empty()) kept.pop_back();
      trailing = last;
    } else if (segment == ".") {
      trailing = last;
    } else {
      kept.push_back(segment);
    }
    at = slash + 1;
  }
  std::string out;
  for (std::string_view segment : kept) out.append("/").append(segment);
  if (trailing || out.empty()) out += '/';
  return out;
}

}  // namespace

std::string Url::authority() const {
  std::string out = host.find(':') != std::string::npos ? "[" + host + "]" : host;
  if (port != (tls ? 443 : 80)) out += ":" + std::to_string(port);
  return out;
}

std::string Url::host_port() const {
  std::string out = host.find(':') != std::string::npos ? "[" + host + "]" : host;
  return out + ":" + std::to_string(port);
}

std::string Url::origin() const {
  return (tls ? "https://" : "http://") + authority();
}

std::string Url::shown() const {
  return origin() + target.substr(0, target.find('?'));
}

std::optional<Url> parse_url(std::string_view text, std::string *why) {
  if (text.size() > url_bytes_max) return refuse(why, "the URL is longer than 8192 bytes");
  if (!is_printable(text))
    return refuse(why, "the URL contains a space, backslash, control or non-ASCII character");
  Url url;
  url.tls = bh::starts_with_ignoring_case(text, "https://");
  if (!url.tls && !bh::starts_with_ignoring_case(text, "http://")) {
    return refuse(why, "the URL does not start with http:// or https://");
  }
  const auto parts = bh::split_url(text);
  if (!parts) return refuse(why, "the brackets of the URL's host do not match");
  if (!read_authority(*parts, &url, why)) return std::nullopt;
  const std::string_view target = parts->target();
  url.target = target.starts_with('/') ? std::string(target) : "/" + std::string(target);
  return url;
}

std::optional<Url> resolve_url(const Url &base, std::string_view reference, std::string *why) {
  reference = reference.substr(0, reference.find('#'));
  const std::size_t colon = reference.find(':');
  if (colon != std::string_view::npos && reference.find_first_of("/?") > colon) {
    return parse_url(reference, why);
  }
  if (reference.starts_with("//")) {
    return parse_url((base.tls ? "https:" : "http:") + std::string(reference), why);
  }
  if (reference.size() > url_bytes_max) return refuse(why, "the URL is longer than 8192 bytes");
  if (!is_printable(reference))
    return refuse(why, "the URL contains a space, backslash, control or non-ASCII character");
  Url url = base;
  if (reference.empty()) return url;
  const std::string base_path = base.target.substr(0, base.target.find('?'));
  if (reference.front() == '?') {
    url.target = base_path + std::string(reference);
    return url;
  }
  const std::size_t mark = reference.find('?');
  const std::string_view query =
      mark == std::string_view::npos ? std::string_view{} : reference.substr(mark);
  std::string path(reference.substr(0, mark));
  if (path.front() != '/') path = base_path.substr(0, base_path.rfind('/') + 1) + path;
  url.target = remove_dot_segments(path) + std::string(query);
  return url;
}

bool same_origin(const Url &a, const Url &b) noexcept {
  return a.tls == b.tls && a.port == b.port && a.host == b.host;
}

bool is_loopback(std::string_view host) noexcept {
  if (host == "localhost" || host.ends_with(".localhost") || host == "::1") return true;
  if (!host.starts_with("127.")) return false;
  return std::all_of(host.begin(), host.end(), [](char c) { return c == '.' || bh::is_digit(c); });
}

}  // namespace connector_http
