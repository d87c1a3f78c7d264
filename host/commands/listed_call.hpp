// Resolves tool names in the calls for `policy explain` and `policy test`. In these calls, the user
// may write the names that clients see, such as "memory__delete_entities", but rules see the server
// and the tool's original name.
//
// Used on one thread. Accesses no files: the stored tool lists are in the profile
// (ServerDef::kept).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

struct ListedCall {
  std::string call;  // the call with `server` and the tool's original name
  // How the name was resolved, or that the profile has no such server, or that the server lists no
  // such tool.
  std::vector<std::string> notes;
};

// Resolves the tool name in `call`, which is the JSON that the user wrote. Invalid JSON and
// messages that are not tool calls are returned unchanged, so that the policy reports what is
// invalid. If the call does not name a server, returns an error unless exactly one server can have
// this tool.
Result<ListedCall> resolve_listed_call(std::string_view call, const Profile &profile);

}  // namespace bulkhead::program
