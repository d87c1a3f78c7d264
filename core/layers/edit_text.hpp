// Adds, removes and disables servers in the text of a profile file. Callers must verify the result.
// Internal to core/layers.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "layers/edit_servers.hpp"
#include "profile/tree.hpp"

namespace bulkhead::profiles {

// Returns the table mcpServers, mcp_servers or servers of the root, or null if there is none.
const Member *servers_section(const Node &root);

// Add a server and return the new text. The JSON functions return nullopt if the syntax cannot be
// edited automatically. `root` is the parsed text.
std::string add_to_toml(std::string_view text, const Node &root, const NewServer &server);
std::optional<std::string> add_to_json(std::string_view text, const Node &root,
                                       const NewServer &server);
// `object_text` is the server as a JSON object.
std::optional<std::string> add_object_to_json(std::string_view text, const Node &root,
                                              std::string_view name,
                                              const std::string &object_text);
// Removes a server, which must exist, and returns the new text. Returns nullopt if the syntax
// cannot be edited automatically.
std::optional<std::string> remove_from_toml(std::string_view text, const Node &root,
                                            std::string_view name);
std::optional<std::string> remove_from_json(std::string_view text, const Node &root,
                                            std::string_view name);

// Inserts `disabled = true` as the server's first key. The server must exist and must have neither
// a `disabled` nor an `enabled` key. Returns nullopt if the syntax cannot be edited automatically.
std::optional<std::string> disable_in_toml(std::string_view text, const Node &root,
                                           std::string_view name);
std::optional<std::string> disable_in_json(std::string_view text, const Node &root,
                                           std::string_view name);

// Converts a location to a byte offset. Columns count bytes in JSON and characters in TOML.
std::size_t json_offset(std::string_view text, const Place &place);
std::size_t toml_offset(std::string_view text, const Place &place);

}  // namespace bulkhead::profiles
