#include "mcp_headers.hpp"

#include <algorithm>

#include "bulkhead/cpp/basics.hpp"
#include "http-codec/text.hpp"

namespace transport_http {

using bh::equal_ignoring_case;
using http_codec::trim;
namespace {

constexpr std::string_view mcp_prefix = "mcp-";

// `name` must begin with mcp_prefix.
bool is_shown(std::string_view name) noexcept {
  const std::string_view rest = name.substr(mcp_prefix.size());
  return equal_ignoring_case(rest, "protocol-version") || equal_ignoring_case(rest, "method") ||
         equal_ignoring_case(rest, "name") || bh::starts_with_ignoring_case(rest, "param-");
}

}  // namespace

McpHeaders::McpHeaders(std::string_view head) noexcept {
  while (!head.empty()) {
    const std::size_t end = std::min(head.find('\n'), head.size() - 1);
    std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 1);
    if (!bh::starts_with_ignoring_case(line, mcp_prefix)) continue;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || !is_shown(line.substr(0, colon))) continue;
    add(line.substr(0, colon), trim(line.substr(colon + 1)));
  }
}

void McpHeaders::add(std::string_view name, std::string_view value) noexcept {
  bytes_ += name.size() + value.size();
  too_many_ = too_many_ || count_ == headers_.size() || bytes_ > BH_HEADER_BYTES;
  if (!too_many_) headers_[count_++] = {bh::str(name), bh::str(value)};
}

}  // namespace transport_http
