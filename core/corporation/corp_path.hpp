// Parses and matches the paths of directives, for example "mcpServers.github" and "limits.*".
// Internal to the profile libraries.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/tree.hpp"

namespace bulkhead::profiles {

using CorpPath = std::vector<std::string>;

inline constexpr std::size_t kCorpPathBytes = 512;
inline constexpr std::size_t kCorpPathParts = 16;

// Parses names that are separated by dots. A name that contains dots or spaces must be in double
// quotes. "*" matches any name. Section aliases are replaced ("servers.x" becomes "mcpServers.x").
// If the text is not a valid path, returns nullopt and sets *why to the reason.
std::optional<CorpPath> parse_corp_path(std::string_view text, std::string *why);

std::string to_string(const CorpPath &path);

// Returns true if the paths are equal or one contains the other.
bool paths_meet(const CorpPath &a, const CorpPath &b);

// Returns true if the paths are equal or `above` contains `path`.
bool covers(const CorpPath &above, const CorpPath &path);

// A member of a layer's tree that sets the value at a path, either directly or as part of a
// containing table.
struct Touch {
  Node *parent = nullptr;
  std::size_t index = 0;  // index in parent->members
  CorpPath path;
  const Member &member() const { return parent->members[index]; }
};

// Returns the members through which `layer` changes the value at `path` when it is merged over
// `below`. Each of them is either the member at `path`, or a member that contains `path` and
// replaces the old value as a whole (for example, a server or a rule).
std::vector<Touch> find_touches(Node &layer, const CorpPath &path, const Node &below);

// Returns the members whose own path matches `path`.
std::vector<Touch> find_members(Node &root, const CorpPath &path);

// Erases the members from their tables and clears `touches`.
void erase_all(std::vector<Touch> &touches);

}  // namespace bulkhead::profiles
