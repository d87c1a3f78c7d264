#include "corporation/corp_path.hpp"

#include <algorithm>

#include "profile/diagnostics.hpp"
#include "profile/sections.hpp"
#include "profile/server.hpp"

namespace bulkhead::profiles {

namespace {

bool is_any(std::string_view part) {
  return part == "*";
}

bool same(std::string_view wanted, std::string_view name) {
  return is_any(wanted) || wanted == name;
}

// Returns true if a path component matches a key. Server keys may have aliases.
bool same_key(const CorpPath &path, std::size_t depth, std::string_view name) {
  if (same(path[depth], name)) return true;
  if (depth != 2 || path.front() != "mcpServers") return false;
  const std::string_view key = server_key(name);
  return !key.empty() && key == server_key(path[depth]);
}

bool is_plugin_group(std::string_view name) {
  const auto groups = plugin_groups();
  return std::find(groups.begin(), groups.end(), name) != groups.end();
}

// Consumes a name and the dot that follows it.
bool consume_part(std::string_view *text, CorpPath *out) {
  std::string part;
  if (text->starts_with('"')) {
    const std::size_t end = text->find('"', 1);
    if (end == std::string_view::npos) return false;
    part = text->substr(1, end - 1);
    text->remove_prefix(end + 1);
    if (!text->empty() && !text->starts_with('.')) return false;
  } else {
    const std::size_t end = std::min(text->find('.'), text->size());
    part = text->substr(0, end);
    text->remove_prefix(end);
    if (part.find_first_of(" \"") != std::string::npos) return false;
  }
  if (part.empty()) return false;
  out->push_back(std::move(part));
  if (text->empty()) return true;
  text->remove_prefix(1);  // the dot
  return !text->empty();
}

// Replaces section aliases with their canonical names, as canonical_layer() does.
void make_canonical(CorpPath *path) {
  std::string &first = path->front();
  if (first == "mcp_servers" || first == "servers") first = "mcpServers";
  if (first == "policy") {
    first = "policies";
    path->insert(path->begin() + 1, "policy");
  }
}

// Returns true if `member`, in a table at `depth`, replaces the corresponding member of `below`
// entirely instead of being merged with it.
bool replaces_whole(const Member &member, const CorpPath &path, std::size_t depth,
                    const Node &below) {
  const std::string &section = path.front();
  if (depth == 1 && section == "mcpServers") return true;
  if (depth == 1 && is_plugin_group(section)) {
    // A change of `enabled` or `disabled` affects the whole instance.
    if (member.value.find("enabled") != nullptr || member.value.find("disabled") != nullptr)
      return true;
    const Node *plugin = member.value.find("plugin");
    const Node *old = below.find("plugin");
    return plugin != nullptr && (old == nullptr || old->text != plugin->text);
  }
  // A rule replaces the whole rule of the same name, even if the two are written in different (but
  // equivalent) forms.
  if (section == "security") return depth == 3 && path[1] == "rules";
  return (depth == 2 && section == "profiles") || (depth == 1 && section == "default");
}

// Visits the members of a tree that match a path.
struct Walk {
  const CorpPath &path;
  bool exact;  // if set, visits only the members at the path itself
  std::vector<Touch> *out;

  void into(Node &table, std::size_t depth, const CorpPath &above, const Node *below) const {
    for (std::size_t i = 0; i < table.members.size(); ++i) {
      Member &member = table.members[i];
      if (!same_key(path, depth, member.name)) continue;
      CorpPath here = above;
      here.push_back(member.name);
      const Node *under = below != nullptr ? below->find(member.name) : nullptr;
      const bool deeper = depth + 1 < path.size();
      const bool whole =
          member.value.kind != Kind::table ||
          (!exact && under != nullptr && deeper && replaces_whole(member, path, depth, *under));
      if (deeper && !whole)
        into(member.value, depth + 1, here, under);
      else if (!deeper || !exact)
        out->push_back({&table, i, std::move(here)});
    }
  }
};

}  // namespace

std::optional<CorpPath> parse_corp_path(std::string_view text, std::string *why) {
  CorpPath out;
  if (text.empty() || text.size() > kCorpPathBytes) {
    *why = "a path must be 1 to " + std::to_string(kCorpPathBytes) + " bytes long";
    return std::nullopt;
  }
  while (!text.empty()) {
    if (consume_part(&text, &out) && out.size() <= kCorpPathParts) continue;
    *why =
        "not a valid path: separate names with dots, put names with dots or spaces in double "
        "quotes, and use at most " +
        std::to_string(kCorpPathParts) + " names";
    return std::nullopt;
  }
  make_canonical(&out);
  return out;
}

std::string to_string(const CorpPath &path) {
  std::string out;
  for (const std::string &part : path) out = join(out, part);
  return out;
}

bool paths_meet(const CorpPath &a, const CorpPath &b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
    if (!same(a[i], b[i]) && !same(b[i], a[i])) return false;
  return true;
}

bool covers(const CorpPath &above, const CorpPath &path) {
  if (above.size() > path.size()) return false;
  for (std::size_t i = 0; i < above.size(); ++i)
    if (!same(above[i], path[i])) return false;
  return true;
}

std::vector<Touch> find_touches(Node &layer, const CorpPath &path, const Node &below) {
  std::vector<Touch> out;
  Walk{path, false, &out}.into(layer, 0, {}, &below);
  return out;
}

std::vector<Touch> find_members(Node &root, const CorpPath &path) {
  std::vector<Touch> out;
  Walk{path, true, &out}.into(root, 0, {}, nullptr);
  return out;
}

void erase_all(std::vector<Touch> &touches) {
  // The touches are in the order of the tree, so erasing from the last to the first keeps the
  // remaining indexes and pointers valid.
  for (std::size_t i = touches.size(); i-- > 0;) {
    std::vector<Member> &members = touches[i].parent->members;
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(touches[i].index));
  }
  touches.clear();
}

}  // namespace bulkhead::profiles
