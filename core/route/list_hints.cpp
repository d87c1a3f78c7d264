#include "route/list_hints.hpp"

#include <algorithm>
#include <charconv>

namespace bulkhead {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;

std::string_view value_of(std::string_view member) noexcept {
  std::size_t at = member.find(':');
  if (at == member.npos) return {};
  at = member.find_first_not_of(" \t\r\n", at + 1);
  return at == member.npos ? std::string_view() : member.substr(at);
}

}  // namespace

ListHints ListHints::of(const mcp::Scan &scan, std::string_view message) noexcept {
  ListHints out;
  const std::string_view ttl = value_of(scan.ttl_ms.in(message));
  const char *last = ttl.data() + ttl.size();
  std::uint64_t ms = 0;
  const auto [end, failed] = std::from_chars(ttl.data(), last, ms);
  if (failed == std::errc::result_out_of_range) {
    out.ttl_ms = max_ttl_ms;
  } else if (failed == std::errc{} && end == last) {
    out.ttl_ms = std::min(ms, max_ttl_ms);
  }
  out.is_public = value_of(scan.cache_scope.in(message)) == R"("public")";
  return out;
}

ListHints ListAge::hints(bool reported, std::uint64_t now_ns) const noexcept {
  ListHints out = hints_;
  if (reported) return out;
  const std::uint64_t age_ms = (now_ns - std::min(now_ns, since_ns_)) / ns_per_ms;
  out.ttl_ms -= std::min(out.ttl_ms, age_ms);
  return out;
}

bool ListAge::needs_refresh(std::uint64_t now_ns) const noexcept {
  const std::uint64_t lasts_ms = std::max(hints_.ttl_ms, min_refresh_ms);
  return since_ns_ != 0 && now_ns >= since_ns_ + lasts_ms * ns_per_ms;
}

}  // namespace bulkhead
