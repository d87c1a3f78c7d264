#include "guard.hpp"

#include <bulkhead/cpp/text.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <utility>

#include "http-codec/text.hpp"

namespace transport_http {

using bh::equal_ignoring_case;
using http_codec::trim;

namespace {

constexpr std::array<std::string_view, 3> loopback_names{"127.0.0.1", "localhost", "[::1]"};

struct HostPort {
  std::string_view host;
  std::string_view port;  // empty if missing
};

// Accepts only "host", "host:port", "[v6]" and "[v6]:port".
std::optional<HostPort> split(std::string_view text) noexcept {
  std::size_t end;
  if (text.starts_with('[')) {
    end = text.find(']');
    if (end == text.npos) return std::nullopt;
    ++end;
  } else {
    end = std::min(text.find(':'), text.size());
  }
  HostPort out{text.substr(0, end), {}};
  if (out.host.empty()) return std::nullopt;
  if (end == text.size()) return out;
  out.port = text.substr(end + 1);
  const bool digits = std::all_of(out.port.begin(), out.port.end(), bh::is_digit);
  if (text[end] != ':' || out.port.empty() || out.port.size() > 5 || !digits) return std::nullopt;
  return out;
}

bool is_loopback_name(std::string_view host) noexcept {
  return std::any_of(loopback_names.begin(), loopback_names.end(),
                     [&](std::string_view name) { return equal_ignoring_case(host, name); });
}

bool is_address(std::string_view host) noexcept {
  const bool v6 = host.size() > 2 && host.front() == '[';
  if (v6) host = host.substr(1, host.size() - 2);
  std::array<char, 64> text{};
  if (host.size() >= text.size()) return false;
  std::copy(host.begin(), host.end(), text.begin());
  std::array<unsigned char, 16> bytes;
  return ::inet_pton(v6 ? AF_INET6 : AF_INET, text.data(), bytes.data()) == 1;
}

}  // namespace

Guard::Guard(GuardConfig config, std::uint16_t port, bool by_address)
    : config_(std::move(config)), port_(port), by_address_(by_address) {
  for (std::string &host : config_.hosts) host = bh::lowered(host);
  for (std::string &origin : config_.origins) origin = bh::lowered(origin);
  for (const std::string_view name : loopback_names) {
    local_.push_back(std::string(name) + ":" + std::to_string(port));
  }
}

bool Guard::host_allowed(std::string_view host) const noexcept {
  for (const std::string &local : local_) {
    if (equal_ignoring_case(host, local)) return true;
  }
  const auto parts = split(host);
  if (!parts) return false;
  std::uint32_t port = 80;
  if (!parts->port.empty()) {
    std::from_chars(parts->port.data(), parts->port.data() + parts->port.size(), port);
  }
  const bool port_fits = port_ == 0 || port == port_;
  if (port_fits && is_loopback_name(parts->host)) return true;
  if (by_address_ && port_fits && is_address(parts->host)) return true;
  return std::any_of(config_.hosts.begin(), config_.hosts.end(), [&](const std::string &allowed) {
    return equal_ignoring_case(host, allowed) || equal_ignoring_case(parts->host, allowed);
  });
}

bool Guard::origin_allowed(std::string_view origin) const noexcept {
  if (origin.size() > max_origin) return false;
  for (const std::string &allowed : config_.origins) {
    if (equal_ignoring_case(origin, allowed)) return true;
  }
  for (const std::string_view scheme :
       {std::string_view("http://"), std::string_view("https://")}) {
    if (origin.size() <= scheme.size() || !bh::starts_with_ignoring_case(origin, scheme)) {
      continue;
    }
    const auto parts = split(origin.substr(scheme.size()));
    if (parts && is_loopback_name(parts->host)) return true;
  }
  return false;
}

// Rejects "same-site", because a page on another port or subdomain is trusted only if its Origin
// is allowed.
bool Guard::fetch_site_allowed(std::string_view site) noexcept {
  return site.empty() || equal_ignoring_case(site, "none") ||
         equal_ignoring_case(site, "same-origin");
}

namespace {

constexpr std::string_view bearer_scheme = "bearer ";

// Returns the bearer token, or an empty string if there is none.
std::string_view bearer_token(std::string_view authorization) noexcept {
  if (!bh::starts_with_ignoring_case(authorization, bearer_scheme)) return {};
  return trim(authorization.substr(bearer_scheme.size()));
}

}  // namespace

bool Guard::has_token(std::string_view authorization) noexcept {
  return !bearer_token(authorization).empty();
}

std::uint64_t WrongTokens::add(std::uint64_t now_ns) noexcept {
  ++count_;
  if (now_ns < next_ns_) return 0;
  next_ns_ = now_ns + interval_ns;
  return std::exchange(count_, 0);
}

bool Guard::token_matches(std::string_view authorization) const noexcept {
  const std::string_view given = bearer_token(authorization);
  const std::string_view wanted = config_.token;
  if (given.empty() || wanted.empty()) return false;
  std::size_t difference = given.size() ^ wanted.size();
  for (std::size_t i = 0; i < given.size(); ++i) {
    difference |= static_cast<unsigned char>(given[i] ^ wanted[i % wanted.size()]);
  }
  return difference == 0;
}

}  // namespace transport_http
