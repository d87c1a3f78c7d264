#include "builtin-http/url.hpp"

#include <bulkhead/cpp/text.hpp>

#include <algorithm>
#include <vector>

namespace builtin_http {
namespace {

constexpr std::size_t max_url = 8192;
constexpr std::size_t shown_url = 200;

bool invalid(std::string_view text, std::string_view why, std::string *problem) {
  *problem = "invalid URL \"" + std::string(text.substr(0, shown_url)) + "\": " + std::string(why);
  return false;
}

bool read_port(std::string_view port, Url *out) {
  out->port = out->scheme == "http" ? 80 : 443;
  if (port.empty()) return true;
  if (port.size() > 5 || !std::all_of(port.begin(), port.end(), bh::is_digit)) return false;
  const int number = std::stoi(std::string(port));
  out->port = static_cast<std::uint16_t>(number);
  return number >= 1 && number <= 65535;
}

bool read_authority(std::string_view text, std::string_view authority, Url *out,
                    std::string *problem) {
  if (authority.find('@') != authority.npos) {
    // The message does not quote the URL, which may contain a password.
    *problem = "invalid URL: it must not contain a user name or password";
    return false;
  }
  const std::size_t bracket = authority.find(']');
  const std::size_t colon = authority.find(':', bracket == authority.npos ? 0 : bracket);
  const std::string_view host = authority.substr(0, colon);
  if (host.empty()) {
    *problem = "the URL \"" + std::string(text.substr(0, shown_url)) + "\" has no host";
    return false;
  }
  if (!parse_host(host, &out->host)) {
    return invalid(text, "the host is not a name or an IP address", problem);
  }
  const std::string_view port = colon == authority.npos ? "" : authority.substr(colon + 1);
  return read_port(port, out) || invalid(text, "the port is not a number up to 65535", problem);
}

// Returns the path and query without the fragment, with non-ASCII bytes percent-encoded.
std::string target_of(std::string_view text) {
  static constexpr char hex[] = "0123456789ABCDEF";
  text = text.substr(0, text.find('#'));
  std::string out = text.starts_with('/') ? "" : "/";
  for (const char c : text) {
    const auto b = static_cast<unsigned char>(c);
    if (b < 0x80) {
      out += c;
    } else {
      out += {'%', hex[b >> 4], hex[b & 15]};
    }
  }
  return out;
}

std::string without_dot_segments(std::string_view path) {
  std::vector<std::string_view> kept;
  bool folder = true;
  for (std::size_t at = 1; at <= path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    const std::string_view segment = path.substr(at, slash - at);
    folder = segment.empty() || segment == "." || segment == "..";
    if (segment == ".." && !kept.empty()) kept.pop_back();
    if (segment != "." && segment != ".." && !(segment.empty() && slash == path.size())) {
      kept.push_back(segment);
    }
    at = slash + 1;
  }
  std::string out;
  for (const std::string_view segment : kept) out += "/" + std::string(segment);
  if (folder || out.empty()) out += '/';
  return out;
}

}  // namespace

std::string Url::origin() const {
  const bool usual = port == (scheme == "http" ? 80 : 443);
  return scheme + "://" + host.bracketed() + (usual ? "" : ":" + std::to_string(port));
}

bool parse_url(std::string_view text, Url *out, std::string *problem) {
  *out = {};
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\n')) text.remove_suffix(1);
  if (text.empty()) {
    *problem = "the argument \"url\" is missing";
    return false;
  }
  if (text.size() > max_url) return invalid(text, "it is longer than 8192 bytes", problem);
  if (std::any_of(text.begin(), text.end(), [](char c) {
        return static_cast<unsigned char>(c) <= 0x20 || c == '\\' || c == '"' || c == '<' ||
               c == '>' || c == 0x7F;
      })) {
    return invalid(text, "it contains a character that must be percent-encoded", problem);
  }
  const std::size_t colon = text.find("://");
  const bool has_scheme =
      colon != text.npos && colon > 0 && bh::is_letter(text.front()) &&
      std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), [](char c) {
        return bh::is_letter_or_digit(c) || c == '+' || c == '-' || c == '.';
      });
  if (!has_scheme) return invalid(text, "it must begin with http:// or https://", problem);
  out->scheme = bh::lowered(text.substr(0, colon));
  if (out->scheme != "http" && out->scheme != "https") {
    *problem = "the scheme \"" + out->scheme + "\" is not supported; only http and https are";
    return false;
  }
  const std::string_view rest = text.substr(colon + 3);
  const std::size_t end = std::min(rest.find_first_of("/?#"), rest.size());
  if (!read_authority(text, rest.substr(0, end), out, problem)) return false;
  out->target = target_of(rest.substr(end));
  return true;
}

bool resolve_url(const Url &base, std::string_view location, Url *out, std::string *problem) {
  location = location.substr(0, location.find('#'));
  const std::size_t colon = location.find(':');
  const bool absolute = colon != location.npos && location.find_first_of("/?") > colon;
  if (absolute) return parse_url(location, out, problem);
  if (location.starts_with("//")) {
    return parse_url(base.scheme + ":" + std::string(location), out, problem);
  }
  const std::string base_path = base.target.substr(0, base.target.find('?'));
  std::string path;
  if (location.empty()) {
    path = base.target;
  } else if (location.front() == '?') {
    path = base_path + std::string(location);
  } else {
    const std::size_t query = std::min(location.find('?'), location.size());
    std::string merged(location.substr(0, query));
    if (!merged.starts_with('/')) merged = base_path.substr(0, base_path.rfind('/') + 1) + merged;
    path = without_dot_segments(merged) + std::string(location.substr(query));
  }
  return parse_url(base.origin() + path, out, problem);
}

}  // namespace builtin_http
