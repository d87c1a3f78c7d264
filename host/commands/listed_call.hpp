// Resolves the tool names that clients see, such as "memory__delete_entities", in the calls for
// `policy explain` and `policy test`. Rules see the server and the original name of the tool.
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
  // How the name was resolved, or that the profile has no such server or the server no such tool.
  std::vector<std::string> notes;
};

// `call` is the JSON that the user wrote. Messages that are not tool calls and invalid JSON are
// returned unchanged, so that the policy reports what is invalid. Returns an error if the call
// names no server, and no server or several servers can have this tool.
Result<ListedCall> resolve_listed_call(std::string_view call, const Profile &profile);

}  // namespace bulkhead::program
