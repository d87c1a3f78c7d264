#include "builtin-http/domain_rules.hpp"

#include <algorithm>
#include <charconv>

namespace builtin_http {
namespace {

bool parse_port(std::string_view text, std::uint16_t *out) {
  const char *end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, *out);
  return error == std::errc() && at == end && *out != 0;
}

const DomainPattern *find(const std::vector<DomainPattern> &patterns, const Url &url) {
  const auto at = std::find_if(patterns.begin(), patterns.end(),
                               [&](const DomainPattern &p) { return p.matches(url); });
  return at == patterns.end() ? nullptr : &*at;
}

}  // namespace

bool DomainPattern::parse(std::string_view text, DomainPattern *out) {
  *out = {};
  out->text_ = text;
  out->below_ = text.starts_with("*.");
  if (out->below_) text.remove_prefix(2);
  const std::size_t colon = text.rfind(':');
  if (colon != text.npos && text.find(']', colon) == text.npos) {
    if (!parse_port(text.substr(colon + 1), &out->port_)) return false;
    text = text.substr(0, colon);
  }
  HostName host;
  // parse_host() rejects "*" in other positions, where it would look like a wildcard but match
  // nothing.
  if (!parse_host(text, &host) || (out->below_ && host.is_address)) return false;
  out->name_ = std::move(host.name);
  return true;
}

bool DomainPattern::matches(const Url &url) const {
  const std::string_view host = url.host.name;
  if (port_ != 0 && port_ != url.port) return false;
  if (!below_) return host == name_;
  return host.size() > name_.size() + 1 && host.ends_with(name_) &&
         host[host.size() - name_.size() - 1] == '.';
}

std::string DomainRules::refusal(const Url &url) const {
  const std::string domain = "the domain " + url.host.name + " is blocked";
  if (const DomainPattern *p = find(block, url)) {
    return domain + " by the block list entry " + p->text();
  }
  if (default_allow || find(allow, url) != nullptr) return {};
  return domain + ": it is not on the allow list";
}

}  // namespace builtin_http
