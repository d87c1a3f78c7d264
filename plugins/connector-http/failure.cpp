#include "failure.hpp"

#include "http-codec/text.hpp"

#include <algorithm>

#include "bulkhead/cpp/basics.hpp"
#include "bulkhead/cpp/messages.hpp"

namespace connector_http {

namespace {

constexpr std::size_t scope_bytes_max = 120;
constexpr std::uint64_t retry_after_s_max = 3600;

std::string number(std::uint16_t status) {
  return "HTTP " + std::to_string(status);
}

// Removes all characters except printable ASCII, because control characters could inject lines into
// the log. Valid scope tokens contain only printable ASCII, so they are not changed.
std::string printable(std::string_view s) {
  std::string out(s);
  std::erase_if(out, [](char c) { return c < 0x20 || c > 0x7E; });
  return out;
}

bh_error authentication(const HttpFailure &f) {
  const std::string scope = f.scope.substr(0, scope_bytes_max);
  if (f.insufficient_scope) {
    const std::string wanted = scope.empty() ? "not specified by the server" : scope;
    return bh::make_error(BH_E_AUTH,
                          "insufficient scope: " + wanted + " (" + number(f.status) + ")");
  }
  if (f.status == 401) {
    std::string text = "authentication required (" + number(f.status);
    if (!scope.empty()) text += ", scope: " + scope;
    return bh::make_error(BH_E_AUTH, text + "); check this server's headers");
  }
  if (f.challenged) {
    return bh::make_error(BH_E_AUTH,
                          "access denied (" + number(f.status) + "); check this server's headers");
  }
  return bh::make_error(BH_E_DENIED, "access denied (" + number(f.status) + ")");
}

bh_error redirected(const HttpFailure &f) {
  if (f.location.empty()) {
    return bh::make_error(BH_E_PROTOCOL,
                          "redirected without a valid location (" + number(f.status) + ")");
  }
  return bh::make_error(BH_E_PROTOCOL, "redirected to " + f.location + " (" + number(f.status) +
                                           "); use that url in the configuration");
}

}  // namespace

std::string challenge_parameter(std::string_view challenge, std::string_view name) {
  bool quoted = false;
  for (std::size_t at = 0; at < challenge.size(); ++at) {
    if (challenge[at] == '"') quoted = !quoted;
    const bool starts = at == 0 || challenge[at - 1] == ' ' || challenge[at - 1] == ',';
    if (quoted || !starts) continue;
    if (!bh::starts_with_ignoring_case(challenge.substr(at), name)) continue;
    std::string_view rest = challenge.substr(at + name.size());
    if (rest.empty() || rest.front() != '=') continue;
    rest.remove_prefix(1);
    if (!rest.starts_with('"')) return std::string(rest.substr(0, rest.find_first_of(", ")));
    rest.remove_prefix(1);
    return std::string(rest.substr(0, rest.find('"')));
  }
  return {};
}

std::uint32_t retry_after_ms(std::string_view value) noexcept {
  std::uint64_t seconds = 0;
  if (value.empty() || value.size() > 9) return 0;
  for (char c : value) {
    if (c < '0' || c > '9') return 0;
    seconds = seconds * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return static_cast<std::uint32_t>(std::min(seconds, retry_after_s_max) * 1000);
}

HttpFailure describe(const ResponseHead &head, const Url &url) {
  HttpFailure f;
  f.status = head.status;
  f.retry_after_ms = retry_after_ms(head.retry_after);
  f.challenged = head.challenge_count != 0;
  std::size_t room = BH_CHALLENGE_BYTES;
  for (std::uint32_t i = 0; i < head.challenge_count; ++i) {
    const std::string_view challenge = head.challenges[i];
    f.insufficient_scope =
        f.insufficient_scope || challenge_parameter(challenge, "error") == "insufficient_scope";
    if (f.scope.empty()) f.scope = printable(challenge_parameter(challenge, "scope"));
    if (challenge.size() > room) continue;
    room -= challenge.size();
    f.challenges.emplace_back(challenge);
  }
  if (!head.location.empty()) {
    if (auto to = resolve_url(url, head.location, nullptr)) f.location = to->shown().substr(0, 300);
  }
  return f;
}

static_assert(ResponseHead::max_challenges <= BH_CHALLENGE_COUNT);

ReportedFailure::ReportedFailure(const bh_error &error, const HttpFailure *failure) noexcept
    : failure_(bh::lane_failure(error)) {
  if (failure == nullptr) return;
  failure_.http_status = failure->status;
  if (error.code != BH_E_AUTH) return;
  for (const std::string &challenge : failure->challenges) {
    challenges_[failure_.challenge_count++] = bh::str(challenge);
  }
  failure_.challenges = challenges_.data();
  failure_.scope = bh::str(failure->scope);
}

bh_error to_error(const HttpFailure &f, bool with_session) {
  if (f.status == 401 || f.status == 403) return authentication(f);
  if (f.status == 404 && with_session) {
    return bh::make_error(BH_E_SESSION_LOST, "session expired (HTTP 404)");
  }
  if (f.status >= 300 && f.status < 400) return redirected(f);
  const bool told_to_wait = f.status == 429 || (f.status == 503 && f.retry_after_ms > 0);
  if (told_to_wait) {
    const char *text = f.status == 429 ? "too many requests" : "temporarily unavailable";
    return bh::make_error(BH_E_UNAVAILABLE, std::string(text) + " (" + number(f.status) + ")",
                          f.retry_after_ms);
  }
  if (f.status >= 500) {
    return bh::make_error(
        BH_E_IO, "server error " + std::to_string(f.status) + "; the request may have run");
  }
  if (f.status == 404) {
    return bh::make_error(BH_E_PROTOCOL, "not found (HTTP 404); check the url's path");
  }
  if (f.status == 405) {
    return bh::make_error(BH_E_PROTOCOL, "method not allowed (HTTP 405); check the url's path");
  }
  if (f.status == 413)
    return bh::make_error(BH_E_LIMIT, "the server rejected the message as too large (HTTP 413)");
  return bh::make_error(BH_E_PROTOCOL,
                        "the server rejected the request (" + number(f.status) + ")");
}

}  // namespace connector_http
