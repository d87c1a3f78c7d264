// Provides the tools of a profile's servers, if a gateway has stored their lists.
//
// Used on one thread. Accesses no files: the stored lists are in the profile (ServerDef::kept).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/names.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// The tools of a server or of a tools plugin. For a tools plugin, `server` is the plugin's ID, and
// no list of its tools is stored.
struct KnownTools {
  std::string server;
  std::optional<std::set<std::string>> tools;  // original names; nullopt if no list is stored

  bool lists(std::string_view tool) const {
    return tools.has_value() && tools->contains(std::string(tool));
  }
};

// Returns an entry for each server in the profile, including disabled ones, and for each tools
// plugin.
std::vector<KnownTools> known_tools(const Profile &profile);

// Returns the tool's original name if clients may see a tool of this server under the name
// `listed`. A shortened name can be resolved only if the server's list is stored.
std::optional<std::string> original_name(const KnownTools &server, const Names &names,
                                         std::string_view listed);

// Returns the name as printable text in quotes.
std::string shown_name(std::string_view name);

}  // namespace bulkhead::program
