// The tools of a profile's servers, as far as a gateway has stored their lists.
//
// Used on one thread. Reads nothing; the stored lists are those in the profile (ServerDef::kept).
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/names.hpp"
#include "profile/profile.hpp"

namespace bulkhead::program {

// The tools of a server, or of a tools plugin (`server` is its id), whose tools are not stored.
struct KnownTools {
  std::string server;
  std::optional<std::set<std::string>> tools;  // original names; nullopt if no list is stored

  bool lists(std::string_view tool) const {
    return tools.has_value() && tools->contains(std::string(tool));
  }
};

// Returns an entry for each server of the profile, also for disabled ones, and each tools plugin.
std::vector<KnownTools> known_tools(const Profile &profile);

// Returns the original name if this server can have a tool with the listed name. Without a stored
// list, a shortened name cannot be resolved.
std::optional<std::string> original_name(const KnownTools &server, const Names &names,
                                         std::string_view listed);

// Returns the name as printable text in quotes.
std::string shown_name(std::string_view name);

}  // namespace bulkhead::program
