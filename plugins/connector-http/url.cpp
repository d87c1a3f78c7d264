#include "url.hpp"

#include <algorithm>
#include <charconv>
#include <vector>

namespace connector_http {
namespace {

constexpr std::size_t url_bytes_max = 8192;

std::optional<Url> refuse(std::string *why, const char *text) {
  if (why != nullptr) *why = text;
  return std::nullopt;
}

char lower(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

std::string lowered(std::string_view s) {
  std::string out(s);
  std::transform(out.begin(), out.end(), out.begin(), lower);
  return out;
}

bool printable(std::string_view s) noexcept {
  return std::all_of(s.begin(), s.end(), [](char c) { return c > 0x20 && c < 0x7F && c != '\\'; });
}

bool host_bytes_ok(std::string_view host, bool v6) noexcept {
  if (host.empty() || host.size() > 253) return false;
  return std::all_of(host.begin(), host.end(), [v6](char c) {
    const char l = lower(c);
    const bool name = (l >= 'a' && l <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
    return v6 ? (l >= 'a' && l <= 'f') || (c >= '0' && c <= '9') || c == ':' || c == '.'
              : name || c == '_';
  });
}

bool starts_with_scheme(std::string_view s, std::string_view scheme) {
  return s.size() >= scheme.size() && lowered(s.substr(0, scheme.size())) == scheme;
}

// authority = host [":" port]
bool parse_authority(std::string_view authority, Url *url, std::string *why) {
  if (authority.find('@') != std::string_view::npos) {
    refuse(why, "the URL holds a user name or password; put credentials into headers");
    return false;
  }
  std::string_view host = authority, port;
  bool v6 = false;
  if (!authority.empty() && authority.front() == '[') {
    const std::size_t end = authority.find(']');
    if (end == std::string_view::npos) return refuse(why, "the URL's host lacks its ]"), false;
    v6 = true;
    host = authority.substr(1, end - 1);
    std::string_view rest = authority.substr(end + 1);
    if (!rest.empty() && rest.front() != ':') return refuse(why, "the URL's port is wrong"), false;
    if (!rest.empty()) port = rest.substr(1);
  } else if (const std::size_t colon = authority.find(':'); colon != std::string_view::npos) {
    host = authority.substr(0, colon);
    port = authority.substr(colon + 1);
  }
  if (!host_bytes_ok(host, v6)) return refuse(why, "the URL's host is missing or malformed"), false;
  url->host = lowered(host);
  url->port = url->tls ? 443 : 80;
  if (!port.empty()) {
    unsigned value = 0;
    auto [end, ec] = std::from_chars(port.data(), port.data() + port.size(), value);
    if (ec != std::errc{} || end != port.data() + port.size() || value == 0 || value > 65535) {
      return refuse(why, "the URL's port is wrong"), false;
    }
    url->port = static_cast<std::uint16_t>(value);
  }
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
  if (!printable(text)) return refuse(why, "the URL holds spaces, control or non-ASCII bytes");
  Url url;
  std::size_t skip = 7;
  if (starts_with_scheme(text, "https://")) {
    url.tls = true;
    skip = 8;
  } else if (!starts_with_scheme(text, "http://")) {
    return refuse(why, "the URL does not start with http:// or https://");
  }
  std::string_view rest = text.substr(skip);
  rest = rest.substr(0, rest.find('#'));
  const std::size_t end = std::min(rest.find('/'), rest.find('?'));
  if (!parse_authority(rest.substr(0, end), &url, why)) return std::nullopt;
  const std::string_view tail =
      end == std::string_view::npos ? std::string_view{} : rest.substr(end);
  url.target = tail.empty() || tail.front() != '/' ? "/" + std::string(tail) : std::string(tail);
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
  if (!printable(reference)) return refuse(why, "the URL holds spaces, control or non-ASCII bytes");
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
  return std::all_of(host.begin(), host.end(),
                     [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

}  // namespace connector_http
