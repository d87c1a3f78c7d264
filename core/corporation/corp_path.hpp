// Paths of directives: "mcpServers.github", "limits.*". Internal to the rooms of profiles.
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

// Names between dots, those with dots or spaces in double quotes; "*" stands for any name. Other
// spellings of a section become canonical ("servers.x" is "mcpServers.x"). nullopt, with the reason
// in *why: not a path.
std::optional<CorpPath> parse_corp_path(std::string_view text, std::string *why);

std::string to_string(const CorpPath &path);

// True if one path contains the other.
bool paths_meet(const CorpPath &a, const CorpPath &b);

// True if the first path contains the second or equals it.
bool covers(const CorpPath &above, const CorpPath &path);

// A member of a layer's tree that sets a value at or above a path.
struct Touch {
  Node *parent = nullptr;
  std::size_t index = 0;  // among parent->members
  CorpPath path;
  const Member &member() const { return parent->members[index]; }
};

// The members by which `layer` changes `path` when it is merged over `below`: the member itself, or
// one that contains it and replaces it completely (a server, a plugin instance with another
// plugin).
std::vector<Touch> find_touches(Node &layer, const CorpPath &path, const Node &below);

// The members that are exactly at `path`.
std::vector<Touch> find_members(Node &root, const CorpPath &path);

// Erases the members; the touches are invalid afterwards.
void erase_all(std::vector<Touch> &touches);

}  // namespace bulkhead::profiles
