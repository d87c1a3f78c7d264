// Adding and removing a server's table in the text of a profile. Callers verify the content of the
// result. Internal to core/layers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "layers/edit_servers.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Returns the table of servers, in any of its spellings, or null if there is none.
const Member *servers_section(const Node &root);

// `root` is the parsed text.
std::string add_to_toml(std::string_view text, const Node &root, const NewServer &server);
std::optional<std::string> add_to_json(std::string_view text, const Node &root,
                                       const NewServer &server);
// object_text: the server as JSON.
std::optional<std::string> add_object_to_json(std::string_view text, const Node &root,
                                              std::string_view name,
                                              const std::string &object_text);
// nullopt: the syntax cannot be edited automatically.
std::optional<std::string> remove_from_toml(std::string_view text, const Node &root,
                                            std::string_view name);
std::optional<std::string> remove_from_json(std::string_view text, const Node &root,
                                            std::string_view name);

// Insert `disabled = true` as the first key of this server, which must not have such a key.
std::optional<std::string> disable_in_toml(std::string_view text, const Node &root,
                                           std::string_view name);
std::optional<std::string> disable_in_json(std::string_view text, const Node &root,
                                           std::string_view name);

// Return the byte offset of a location. Columns count bytes in JSON and characters in TOML.
std::size_t json_offset(std::string_view text, const Place &place);
std::size_t toml_offset(std::string_view text, const Place &place);

}  // namespace bulkhead::profiles
