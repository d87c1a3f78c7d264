// Adds and removes a server's table in the text of a profile. Callers verify the result. Internal
// to core/layers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "layers/edit_servers.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Returns the server table, under any of its names, or null if there is none.
const Member *servers_section(const Node &root);

// Returns the text with the server added. `root` is the parsed text.
std::string add_to_toml(std::string_view text, const Node &root, const NewServer &server);
std::optional<std::string> add_to_json(std::string_view text, const Node &root,
                                       const NewServer &server);
// `object_text` is the server as JSON.
std::optional<std::string> add_object_to_json(std::string_view text, const Node &root,
                                              std::string_view name,
                                              const std::string &object_text);
// Returns the text without the server, or nullopt if the syntax cannot be edited automatically.
std::optional<std::string> remove_from_toml(std::string_view text, const Node &root,
                                            std::string_view name);
std::optional<std::string> remove_from_json(std::string_view text, const Node &root,
                                            std::string_view name);

// Inserts `disabled = true` as this server's first key. The server must not have this key.
std::optional<std::string> disable_in_toml(std::string_view text, const Node &root,
                                           std::string_view name);
std::optional<std::string> disable_in_json(std::string_view text, const Node &root,
                                           std::string_view name);

// Returns the byte offset of a location. Columns count bytes in JSON and characters in TOML.
std::size_t json_offset(std::string_view text, const Place &place);
std::size_t toml_offset(std::string_view text, const Place &place);

}  // namespace bulkhead::profiles
