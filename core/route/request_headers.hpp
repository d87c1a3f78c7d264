// The headers that repeat values of a request's body, for servers of revision 2026-07-28 over HTTP:
// the revision, the method, the server's own name of the tool, prompt or resource, and the
// arguments that a tool's inputSchema marks with x-mcp-header.
//
// Used on the I/O thread. Owned by the lane.
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

// Returns true if the server may be reached over a wire with headers. The endpoint's definitions of
// servers have their type, but neither a URL nor a command.
inline bool may_take_headers(const ServerDef &def) noexcept {
  return !def.url.empty() || (!def.type.empty() && def.type != "stdio");
}

class RequestHeaders {
 public:
  // Reads the annotations of the tools of a list. A tool with an invalid annotation is removed from
  // the list, as the revision requires; on_removed gets a text about it.
  void use_tools(ItemList *tools, const std::function<void(const std::string &text)> &on_removed);

  // What a request repeats. The name is text, without quotes.
  struct Values {
    mcp::Method method = mcp::Method::none;
    std::string_view method_text, name, arguments;
  };
  // Fails if the arguments cannot be repeated. The result is valid until the next call.
  Result<std::span<const bh_header>> of(std::string_view revision, const Values &values);

 private:
  std::map<std::string, mcp::ParamHeaders, std::less<>> tools_;  // those with annotations
  mcp::HeaderList list_;
};

}  // namespace bulkhead
