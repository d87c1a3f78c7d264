#include "route/claimed_name.hpp"

#include <memory>
#include <string>

#include "bulkhead/cpp/text.hpp"
#include "mcp/scan.hpp"

namespace bulkhead {

ClaimedName claimed_name(std::string_view client_info, const ClaimedName &before) {
  const std::string_view token = mcp::member(client_info, "name");
  std::string scratch;
  if (!token.starts_with('"')) return {};
  const std::string_view name =
      bh::cut_text(mcp::unquote(token, &scratch), Session::max_claimed_name);
  if (before != nullptr && *before == name) return before;
  return std::make_shared<const std::string>(name);
}

}  // namespace bulkhead
