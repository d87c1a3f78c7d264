#include "formats/capsem_profile.hpp"

#include <algorithm>
#include <utility>

#include "profile/revision.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kRequired[] = {
    "schema", "version",       "id", "revision", "name",  "description", "best_for", "profile_type",
    "ui",     "compatibility", "vm", "packages", "tools", "security"};
constexpr std::string_view kKnown[] = {"schema",
                                       "version",
                                       "id",
                                       "revision",
                                       "name",
                                       "description",
                                       "best_for",
                                       "profile_type",
                                       "ui",
                                       "compatibility",
                                       "vm",
                                       "packages",
                                       "tools",
                                       "security",
                                       "icon_svg",
                                       "extends_profile_id",
                                       "extends_profile_revision",
                                       "detect_servers",
                                       "general",
                                       "appearance",
                                       "editable",
                                       "ai",
                                       "mcpServers",
                                       "skills"};
constexpr std::string_view kServerKeys[] = {
    "enabled",     "type",      "command",         "url",   "args", "env", "headers",
    "bearerToken", "pool_size", "pool_safe_tools", "capsem"};
// Tables that mean something to the other program alone; what is in them is not looked at.
constexpr std::string_view kForeign[] = {"vm",         "packages", "tools", "general",
                                         "appearance", "ai",       "skills"};

template <class List>
bool contains(const List &list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

class Reader {
 public:
  Reader(bool corp, Diagnostics &diagnostics) : corp_(corp), diagnostics_(diagnostics) {}

  Node read(Node &&root) {
    check_keys(root);
    Node out(Kind::table, root.place);
    for (Member &member : root.members) {
      check(member);
      if (member.name == "security") clean_security(member.value);
      if (member.name == "mcpServers") check_servers(member.value);
      if (contains(kForeign, member.name))
        note_left_out(member);
      else if (member.name == "id" || member.name == "revision" || member.name == "security" ||
               member.name == "mcpServers" || member.name == "editable" ||
               member.name == "detect_servers" || member.name == "directives")
        out.members.push_back(std::move(member));
    }
    if (!left_out_.empty())
      diagnostics_.note(root.place, "these sections have no meaning here and are left out: " +
                                        printable(left_out_, 400));
    return out;
  }

 private:
  void check_keys(const Node &root) {
    for (const Member &member : root.members) {
      if (contains(kKnown, member.name) || (corp_ && member.name == "directives")) continue;
      if (member.name == "mcp")
        diagnostics_.error(member.place, "mcp",
                           "[mcp.connectors] is of an older format; servers are [mcpServers.ID]",
                           kUnknownKey);
      else
        diagnostics_.unknown_key(member, "", kKnown);
    }
    for (const std::string_view name : kRequired)
      if (root.find(name) == nullptr)
        diagnostics_.error(root.place, std::string(name),
                           "this key is needed in a profile of " + std::string(kV2Schema));
  }

  void check(const Member &member) {
    const Node &value = member.value;
    const std::string &name = member.name;
    // Its parent would need the owners and the signature that it has itself.
    if (corp_ && name.starts_with("extends_profile_"))
      diagnostics_.error(member.place, name,
                         "the corporation's profile extends no other: write what is meant into it");
    if (name == "version") {
      if (value.kind != Kind::number || value.text != "2")
        diagnostics_.error(value.place, name,
                           "this version of the format is 2, not " +
                               (value.text.empty() ? "that" : printable(value.text)));
    } else if (name == "id" || name == "extends_profile_id") {
      const auto text = diagnostics_.string(value, name);
      if (text && !is_profile_id(*text))
        diagnostics_.error(value.place, name,
                           "3 to 64 of a-z, 0-9 and '-' are needed, not beginning with '-'");
    } else if (name == "revision" || name == "extends_profile_revision") {
      const auto text = diagnostics_.string(value, name);
      if (text && !is_revision(*text))
        diagnostics_.error(value.place, name, "YYYY.MMDD.N is needed, e.g. 2026.0131.1");
    } else if (name == "profile_type") {
      static constexpr std::string_view kTypes[] = {"everyday-work", "coding"};
      diagnostics_.one_of(value, name, kTypes);
    } else if (name == "ui") {
      static constexpr std::string_view kUis[] = {"everyday", "coding"};
      diagnostics_.one_of(value, name, kUis);
    } else if (name == "name" || name == "description" || name == "best_for" ||
               name == "icon_svg") {
      diagnostics_.string(value, name);
    } else if (name == "compatibility") {
      check_compatibility(value);
    } else if (contains(kForeign, name) || name == "security" || name == "mcpServers") {
      diagnostics_.is_table(value, name);
    }
  }

  void check_compatibility(const Node &table) {
    static constexpr std::string_view kKeys[] = {"min_binary", "max_binary", "guest_abi"};
    if (!diagnostics_.is_table(table, "compatibility")) return;
    for (const Member &member : table.members) {
      if (!contains(kKeys, member.name)) {
        diagnostics_.unknown_key(member, "compatibility", kKeys);
        continue;
      }
      const std::string path = join("compatibility", member.name);
      const auto text = diagnostics_.string(member.value, path);
      if (!text || member.name != "guest_abi") continue;
      constexpr std::string_view kPrefix = "capsem-guest-v";
      const std::string_view number =
          text->starts_with(kPrefix) ? std::string_view(*text).substr(kPrefix.size()) : "";
      if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos)
        diagnostics_.error(member.value.place, path, "capsem-guest-vN is needed");
    }
    for (const std::string_view name : {"min_binary", "guest_abi"})
      if (table.find(name) == nullptr)
        diagnostics_.error(table.place, join("compatibility", name), "this key is needed");
  }

  void check_servers(const Node &table) {
    if (table.kind != Kind::table) return;
    for (const Member &server : table.members) {
      if (server.value.kind != Kind::table) continue;  // said later
      for (const Member &member : server.value.members)
        if (!contains(kServerKeys, member.name))
          diagnostics_.unknown_key(member, join("mcpServers", server.name), kServerKeys);
    }
  }

  // What is not about MCP is for the other program's own network.
  void clean_security(Node &security) {
    static constexpr std::string_view kKeys[] = {"capabilities", "rules"};
    static constexpr std::string_view kTypes[] = {"mcp", "http", "dns", "model", "hook"};
    if (security.kind != Kind::table) return;
    for (Member &member : security.members) {
      if (!contains(kKeys, member.name)) {
        diagnostics_.unknown_key(member, "security", kKeys);
        continue;
      }
      if (!diagnostics_.is_table(member.value, join("security", member.name))) continue;
      const std::string_view ours = member.name == "rules" ? "mcp" : "mcp_tools";
      for (const Member &entry : member.value.members) {
        if (member.name == "rules" && !contains(kTypes, entry.name))
          diagnostics_.unknown_key(entry, "security.rules", kTypes);
        else if (entry.name != ours)
          add_left_out(join("security", member.name) + "." + entry.name);
      }
      std::erase_if(member.value.members, [&](const Member &entry) { return entry.name != ours; });
    }
  }

  void note_left_out(const Member &member) {
    if (!member.value.members.empty()) add_left_out(member.name);
  }
  void add_left_out(const std::string &name) {
    left_out_ += (left_out_.empty() ? "" : ", ") + name;
  }

  const bool corp_;
  Diagnostics &diagnostics_;
  std::string left_out_;
};

bool strings_only(const Node &node) {
  return node.kind == Kind::array &&
         std::all_of(node.items.begin(), node.items.end(),
                     [](const Node &item) { return item.kind == Kind::string; });
}

void unite(Node &base, Node &&over) {
  for (Node &item : over.items) {
    const bool there = std::any_of(base.items.begin(), base.items.end(),
                                   [&](const Node &old) { return old.text == item.text; });
    if (!there) base.items.push_back(std::move(item));
  }
}

}  // namespace

bool is_v2(const Node &root) {
  const Node *schema = root.kind == Kind::table ? root.find("schema") : nullptr;
  return schema != nullptr && schema->kind == Kind::string && schema->text == kV2Schema;
}

Node from_v2(Node &&root, bool corp, Diagnostics &diagnostics) {
  return Reader(corp, diagnostics).read(std::move(root));
}

void merge_extended(Node &base, Node &&over) {
  for (Member &member : over.members) {
    const auto found = std::find_if(base.members.begin(), base.members.end(),
                                    [&](const Member &old) { return old.name == member.name; });
    if (found == base.members.end()) {
      base.members.push_back(std::move(member));
      continue;
    }
    found->place = member.place;
    if (found->value.kind == Kind::table && member.value.kind == Kind::table) {
      merge_extended(found->value, std::move(member.value));
      found->value.place = member.place;
    } else if (strings_only(found->value) && strings_only(member.value) && member.name != "args") {
      unite(found->value, std::move(member.value));
    } else {
      found->value = std::move(member.value);
    }
  }
}

}  // namespace bulkhead::profiles
