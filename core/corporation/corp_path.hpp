// Paths that a corp profile's directives name: "mcpServers.github", "limits.*". Internal to
// core/profile.
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
// spellings of a section become ours ("servers.x" is "mcpServers.x"). Nothing, with the reason in
// *why: it is no path.
std::optional<CorpPath> parse_corp_path(std::string_view text, std::string *why);

std::string to_string(const CorpPath &path);

// True if one path leads to the other or to something above it.
bool paths_meet(const CorpPath &a, const CorpPath &b);

// True if the first leads to the second or to something above it.
bool covers(const CorpPath &above, const CorpPath &path);

// A member of a layer's tree that gives a value to what a path names.
struct Touch {
  Node *parent = nullptr;
  std::size_t index = 0;  // among parent->members
  CorpPath path;
  const Member &member() const { return parent->members[index]; }
};

// What `layer` would change of `path` when it is merged over `below`: the member itself, or one
// above it that replaces all that `below` has in it (a server, a plugin instance with another
// plugin).
std::vector<Touch> find_touches(Node &layer, const CorpPath &path, const Node &below);

// The members that are exactly at `path`.
std::vector<Touch> find_members(Node &root, const CorpPath &path);

// Erases what was found; the touches are void afterwards.
void erase_all(std::vector<Touch> &touches);

}  // namespace bulkhead::profiles
