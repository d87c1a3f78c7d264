#include "lane_headers.hpp"

#include <string_view>

#include "bulkhead/cpp/messages.hpp"
#include "http-codec/text.hpp"

namespace connector_http {

using bh::equal_ignoring_case;
namespace {

bool may_be_set(std::string_view name) {
  return bh::starts_with_ignoring_case(name, "mcp-") &&
         !equal_ignoring_case(name, "mcp-session-id");
}

}  // namespace

bh_status read_headers(const bh_lane_message &message, LaneHeaders *out, bh_error *error) {
  const auto headers = bh::headers(message);
  if (const bh_status s = bh::check_headers(headers, error); s != BH_OK) return s;
  std::size_t bytes = 0;
  for (const bh_header &header : headers) bytes += header.name.n + header.value.n + 4;
  out->lines.reserve(bytes);
  for (const bh_header &header : headers) {
    const std::string_view name = bh::view(header.name);
    if (!may_be_set(name)) {
      return bh::fail(error, BH_E_INVALID,
                      "header \"" + std::string(name.substr(0, 100)) +
                          "\" cannot be set by a message: only headers whose names begin with Mcp- "
                          "can, except Mcp-Session-Id");
    }
    out->revision = out->revision || equal_ignoring_case(name, "mcp-protocol-version");
    out->lines.append(name).append(": ").append(bh::view(header.value)).append("\r\n");
  }
  return BH_OK;
}

}  // namespace connector_http
