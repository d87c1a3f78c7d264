// Finds references in the syntax of other clients, which this gateway passes on unchanged. Internal
// to core/profile.
#pragma once

#include <string>
#include <vector>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

struct ForeignReference {
  Place place;
  std::string path;  // relative to the server, such as "headers.Authorization" or "args[1]"
  std::string what;  // names the reference and the remedy
};

// Returns the values of a server that consist of Gemini CLI's $NAME, also after an authorization
// scheme or "--option=", and the command, args and cwd that contain a VS Code variable such as
// ${workspaceFolder}. Names in $NAME must be in upper case, because another value that begins with
// a dollar sign may be a password. An argument after "-c" is not checked for $NAME, because it may
// be a shell script.
std::vector<ForeignReference> foreign_references(const Node &server);

}  // namespace bulkhead::profiles
