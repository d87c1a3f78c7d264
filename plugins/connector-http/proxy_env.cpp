#include "proxy_env.hpp"

#include "http-codec/text.hpp"

namespace connector_http {

using bh::equal_ignoring_case;
namespace {

std::string_view lookup(const char *(*get)(const char *), const char *a, const char *b) {
  const char *value = get(a);
  if ((value == nullptr || *value == '\0') && b != nullptr) value = get(b);
  return value == nullptr ? std::string_view{} : std::string_view(value);
}

// Matches an entry of no_proxy. "*" matches every host. "example.com" and ".example.com" match both
// the name itself and its subdomains. If an entry has a port, the port must also match.
bool entry_matches(std::string_view entry, const Url &url) {
  if (entry.empty()) return false;
  if (entry == "*") return true;
  if (equal_ignoring_case(entry, url.host_port()) || equal_ignoring_case(entry, url.host))
    return true;
  if (entry.front() == '.') entry.remove_prefix(1);
  const std::string host = entry.find(':') == entry.npos ? url.host : url.host_port();
  if (entry.empty() || host.size() < entry.size()) return false;
  if (!equal_ignoring_case(host.substr(host.size() - entry.size()), entry)) return false;
  return host.size() == entry.size() || host[host.size() - entry.size() - 1] == '.';
}

}  // namespace

bool wants_proxy(const Url &url, const char *(*get)(const char *name)) {
  if (is_loopback(url.host)) return false;
  std::string_view proxy =
      url.tls ? lookup(get, "https_proxy", "HTTPS_PROXY") : lookup(get, "http_proxy", nullptr);
  if (proxy.empty()) proxy = lookup(get, "all_proxy", "ALL_PROXY");
  if (proxy.empty()) return false;
  std::string_view except = lookup(get, "no_proxy", "NO_PROXY");
  while (!except.empty()) {
    const std::size_t start = except.find_first_not_of(", ");
    if (start == std::string_view::npos) break;
    except.remove_prefix(start);
    const std::size_t end = except.find_first_of(", ");
    if (entry_matches(except.substr(0, end), url)) return false;
    if (end == std::string_view::npos) break;
    except.remove_prefix(end);
  }
  return true;
}

}  // namespace connector_http
