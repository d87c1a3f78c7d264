#include "route/list_hints.hpp"

#include <algorithm>
#include <charconv>

#include "mcp/member_value.hpp"

namespace bulkhead {
namespace {

constexpr std::uint64_t ns_per_ms = 1'000'000;

}  // namespace

ListHints ListHints::of(const mcp::Scan &scan, std::string_view message) noexcept {
  ListHints out;
  const std::string_view ttl = mcp::member_value(scan.ttl_ms.in(message));
  const char *last = ttl.data() + ttl.size();
  std::uint64_t ms = 0;
  const auto [end, failed] = std::from_chars(ttl.data(), last, ms);
  if (failed == std::errc::result_out_of_range) {
    out.ttl_ms = max_ttl_ms;
  } else if (failed == std::errc{} && end == last) {
    out.ttl_ms = std::min(ms, max_ttl_ms);
  }
  out.is_public = mcp::member_value(scan.cache_scope.in(message)) == R"("public")";
  return out;
}

ListHints ListAge::hints(bool reported, std::uint64_t now_ns) const noexcept {
  ListHints out = hints_;
  if (reported) return out;
  const std::uint64_t age_ms = (now_ns - std::min(now_ns, since_ns_)) / ns_per_ms;
  out.ttl_ms -= std::min(out.ttl_ms, age_ms);
  return out;
}

bool ListAge::needs_refresh(bool reported, std::uint64_t now_ns) const noexcept {
  if (reported && !failed_) return false;
  const std::uint64_t lasts_ms = std::max(hints_.ttl_ms, min_refresh_ms);
  return since_ns_ != 0 && now_ns >= since_ns_ + lasts_ms * ns_per_ms;
}

}  // namespace bulkhead
