// Splits an absolute URL (RFC 3986) into its components, which are slices of the URL. The
// components are not validated, because each caller has different rules: an HTTP client, for
// example, must be stricter than a function that masks credentials. Header only; C++20.
//
// Boost.URL is not used because it is not header-only. It would add a shared library to each
// process and a dependency to the package.
//
// Thread-safe. Allocates no memory.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

namespace bh {

struct UrlParts {
  std::string_view scheme;       // before "://", as written
  std::string_view authority;    // up to the path, query or fragment
  std::string_view credentials;  // before the last '@' of the authority, if has_credentials is set
  std::string_view host;         // without brackets
  std::string_view port;         // after the colon, if has_port is set; may be empty
  std::string_view path;         // empty, or begins with a slash
  std::string_view query;        // after '?'
  std::string_view fragment;     // after '#'
  bool has_credentials = false;
  bool in_brackets = false;  // the host is in brackets, like an IPv6 address
  bool has_port = false;

  // Returns the path and the query in the form of a request target. If the URL has no path, the
  // result does not begin with a slash.
  std::string_view target() const noexcept {
    const char *const end =
        query.data() == nullptr ? path.data() + path.size() : query.data() + query.size();
    return {path.data(), static_cast<std::size_t>(end - path.data())};
  }
};

// Returns nullopt if the URL does not contain "://" after a scheme, or if a bracket is misplaced in
// the host. The components may contain any bytes.
inline std::optional<UrlParts> split_url(std::string_view url) noexcept {
  UrlParts out;
  const std::size_t scheme = url.find("://");
  if (scheme == url.npos || scheme == 0 || url.substr(0, scheme).find_first_of("/?#") != url.npos) {
    return std::nullopt;
  }
  out.scheme = url.substr(0, scheme);
  std::string_view rest = url.substr(scheme + 3);
  if (const std::size_t mark = rest.find('#'); mark != rest.npos) {
    out.fragment = rest.substr(mark + 1);
    rest = rest.substr(0, mark);
  }
  const std::size_t end = rest.find_first_of("/?");
  out.authority = rest.substr(0, end);
  rest.remove_prefix(out.authority.size());
  const std::size_t mark = rest.find('?');
  out.path = rest.substr(0, mark);
  if (mark != rest.npos) out.query = rest.substr(mark + 1);

  std::string_view place = out.authority;
  if (const std::size_t at = place.rfind('@'); at != place.npos) {
    out.has_credentials = true;
    out.credentials = place.substr(0, at);
    place.remove_prefix(at + 1);
  }
  std::size_t host_end = place.find(':');
  if (place.starts_with('[')) {
    const std::size_t close = place.find(']');
    if (close == place.npos) return std::nullopt;
    out.in_brackets = true;
    host_end = close + 1;
    if (host_end != place.size() && place[host_end] != ':') return std::nullopt;
  } else if (place.find_first_of("[]") != place.npos) {
    return std::nullopt;
  }
  out.host = place.substr(0, host_end);
  if (out.in_brackets) out.host = out.host.substr(1, out.host.size() - 2);
  if (host_end < place.size()) {
    out.has_port = true;
    out.port = place.substr(host_end + 1);
  }
  return out;
}

// Returns the port to connect to: the URL's port or, if it has none, the default port of its scheme
// ("http" or "https", in lowercase). Returns 0 if the port is not a number from 1 to 65535, or if
// there is no default.
inline std::uint16_t port_of(const UrlParts &url) noexcept {
  if (url.port.empty()) return url.scheme == "https" ? 443 : url.scheme == "http" ? 80 : 0;
  std::uint16_t port = 0;
  const char *const end = url.port.data() + url.port.size();
  const auto [stop, error] = std::from_chars(url.port.data(), end, port);
  return error == std::errc() && stop == end ? port : 0;
}

}  // namespace bh
