#include "builtin-http/freshness.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

namespace builtin_http {
namespace {

constexpr std::uint64_t max_seconds = 7 * 24 * 3600;

struct Control {
  bool no_store = false, no_cache = false;
  std::optional<std::uint64_t> max_age;
};

std::string_view unquoted(std::string_view s) {
  const std::size_t begin = s.find_first_not_of(" \t\"");
  if (begin == s.npos) return {};
  return s.substr(begin, s.find_last_not_of(" \t\"") - begin + 1);
}

// Parses a number of seconds. Returns 0 (stale) for invalid or signed numbers.
std::uint64_t seconds_of(std::string_view text) {
  std::uint64_t n = 0;
  const auto [at, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error == std::errc::result_out_of_range) return max_seconds;
  return error == std::errc() && at == text.data() + text.size() ? std::min(n, max_seconds) : 0;
}

void read_directive(std::string_view directive, Control *out) {
  const std::size_t equals = directive.find('=');
  const std::string_view name = unquoted(directive.substr(0, equals));
  if (same_name(name, "no-store")) out->no_store = true;
  if (same_name(name, "no-cache")) out->no_cache = true;
  if (!same_name(name, "max-age")) return;
  const std::uint64_t age =
      equals == directive.npos ? 0 : seconds_of(unquoted(directive.substr(equals + 1)));
  // If there are several max-age directives, the lowest value applies.
  out->max_age = std::min(out->max_age.value_or(max_seconds), age);
}

Control control_of(const Response &response) {
  Control out;
  for (const Header &h : response.headers) {
    if (!same_name(h.name, "cache-control")) continue;
    std::string_view rest = h.value;
    while (!rest.empty()) {
      const std::size_t comma = std::min(rest.find(','), rest.size());
      read_directive(rest.substr(0, comma), &out);
      rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
  }
  return out;
}

// Returns how long the response stays fresh, in seconds after `made`, the time of the response.
std::uint64_t lifetime(const Response &response, const Control &control, std::time_t made) {
  if (control.no_cache) return 0;
  if (control.max_age) return *control.max_age;
  const std::time_t expires = parse_date(response.header("expires"));
  if (expires <= made) return 0;
  return std::min<std::uint64_t>(static_cast<std::uint64_t>(expires - made), max_seconds);
}

}  // namespace

std::time_t parse_date(std::string_view text) {
  const std::string copy(text);
  std::tm tm{};
  const char *end = ::strptime(copy.c_str(), "%a, %d %b %Y %H:%M:%S GMT", &tm);
  return end != nullptr && *end == '\0' ? ::timegm(&tm) : -1;
}

Freshness freshness_of(const Response &response, std::time_t now) {
  const Control control = control_of(response);
  Freshness out;
  // The Vary header is ignored except for "*", because all cached requests have the same headers.
  out.store = response.status == 200 && !control.no_store && response.header("vary") != "*";
  if (!out.store) return out;
  const std::time_t date = parse_date(response.header("date"));
  const std::time_t made = date == -1 ? now : date;
  const std::uint64_t age =
      std::max(seconds_of(response.header("age")),
               static_cast<std::uint64_t>(std::max<std::time_t>(now - made, 0)));
  const std::uint64_t fresh = lifetime(response, control, made);
  out.seconds = fresh > age ? fresh - age : 0;
  return out;
}

}  // namespace builtin_http
