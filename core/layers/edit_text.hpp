// A server's table in the text of a profile, added and removed. Internal to core/profile; who calls
// these compares what the text means before and after.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "layers/edit_servers.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// The table of the servers, which may be spelt in several ways; null: there is none.
const Member *servers_section(const Node &root);

// `root`: the text as it was read.
std::string add_to_toml(std::string_view text, const Node &root, const NewServer &server);
std::optional<std::string> add_to_json(std::string_view text, const Node &root,
                                       const NewServer &server);
// Nothing: it is not written in a way that can be removed here.
std::optional<std::string> remove_from_toml(std::string_view text, const Node &root,
                                            std::string_view name);
std::optional<std::string> remove_from_json(std::string_view text, const Node &root,
                                            std::string_view name);

}  // namespace bulkhead::profiles
