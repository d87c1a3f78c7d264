// Resolves the names that clients see ("memory__delete_entities") in the description of a call for
// `policy explain` and `policy test`. Rules see the server and the tool's original name.
//
// Used on one thread. Reads nothing; stored tool lists are those in the profile (ServerDef::kept).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

struct ListedCall {
  std::string call;  // the description with `server` and the original name
  // How the name was resolved; that the profile has no such server, or the server no such tool.
  std::vector<std::string> notes;
};

// `call` is the JSON that the user wrote. Invalid descriptions, and messages other than calls of
// tools, are returned unchanged; the policy reports what is invalid. Returns an error if the name
// without a server belongs to no server, or to several servers.
Result<ListedCall> resolve_listed_call(std::string_view call, const Profile &profile);

}  // namespace bulkhead::program
