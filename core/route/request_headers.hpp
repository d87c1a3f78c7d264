// Composes the HTTP headers that repeat values from a request's body, for servers of revision
// 2026-07-28: the revision, the method, the server's own name for the tool, prompt or resource (or
// the task id), and the arguments that the tool's inputSchema marks with x-mcp-header.
//
// Used on the reactor thread. Owned by the lane's Conversation.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "bulkhead/abi/core.h"
#include "catalog/items.hpp"
#include "mcp/header_list.hpp"
#include "mcp/param_headers.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

// Returns true if requests to this server may carry headers. In the endpoint process, a server's
// definition contains neither its URL nor its command, so its type is also checked.
inline bool may_take_headers(const ServerDef &def) noexcept {
  return !def.url.empty() || (!def.type.empty() && def.type != "stdio");
}

class RequestHeaders {
 public:
  // Reads the header annotations of the listed tools. Removes each tool with an invalid annotation
  // from the list, as the revision requires, and passes a message about it to on_removed.
  void use_tools(ItemList *tools, const std::function<void(const std::string &text)> &on_removed);

  // The values that the headers repeat. `name` is unescaped and has no quotes.
  struct Values {
    mcp::Method method = mcp::Method::none;
    std::string_view method_text, name, arguments;
  };
  // Returns the headers, which are valid until the next call. Fails if the arguments cannot be
  // repeated in headers.
  Result<std::span<const bh_header>> of(std::string_view revision, const Values &values);

 private:
  std::map<std::string, mcp::ParamHeaders, std::less<>> tools_;  // those with annotations
  mcp::HeaderList list_;
};

}  // namespace bulkhead
