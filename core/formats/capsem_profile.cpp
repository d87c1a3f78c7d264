#include "formats/capsem_profile.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "profile/revision.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kServerKeys[] = {
    "enabled",     "type",      "command",         "url",   "args", "env", "headers",
    "bearerToken", "pool_size", "pool_safe_tools", "capsem"};

template <class List>
bool contains(const List &list, std::string_view name) {
  return std::find(std::begin(list), std::end(list), name) != std::end(list);
}

void check_version(const Node &value, const std::string &name, Diagnostics &diagnostics) {
  if (value.kind != Kind::number || value.text != "2")
    diagnostics.error(value.place, name,
                      "the supported version is 2" +
                          (value.text.empty() ? "" : ", not " + printable(value.text)));
}

void check_id(const Node &value, const std::string &name, Diagnostics &diagnostics) {
  const auto text = diagnostics.string(value, name);
  if (text && !is_profile_id(*text))
    diagnostics.error(
        value.place, name,
        "must have 3 to 64 characters from a-z, 0-9 and '-', and must not begin with '-'");
}

void check_revision(const Node &value, const std::string &name, Diagnostics &diagnostics) {
  const auto text = diagnostics.string(value, name);
  if (text && !is_revision(*text))
    diagnostics.error(value.place, name, "must have the form YYYY.MMDD.N, e.g. 2026.0131.1");
}

void check_type(const Node &value, const std::string &name, Diagnostics &diagnostics) {
  static constexpr Word kTypes[] = {{"everyday-work", 0}, {"coding", 1}};
  diagnostics.one_of(value, name, kTypes);
}

void check_ui(const Node &value, const std::string &name, Diagnostics &diagnostics) {
  static constexpr Word kUis[] = {{"everyday", 0}, {"coding", 1}};
  diagnostics.one_of(value, name, kUis);
}

void check_text(const Node &value, const std::string &name, Diagnostics &diagnostics) {
  diagnostics.string(value, name);
}

void check_table(const Node &value, const std::string &name, Diagnostics &diagnostics) {
  diagnostics.is_table(value, name);
}

void check_compatibility(const Node &table, const std::string &, Diagnostics &diagnostics) {
  static constexpr std::string_view kKeys[] = {"min_binary", "max_binary", "guest_abi"};
  if (!diagnostics.is_table(table, "compatibility")) return;
  for (const Member &member : table.members) {
    if (!contains(kKeys, member.name)) {
      diagnostics.unknown_key(member, "compatibility", kKeys);
      continue;
    }
    const std::string path = join("compatibility", member.name);
    const auto text = diagnostics.string(member.value, path);
    if (!text || member.name != "guest_abi") continue;
    constexpr std::string_view kPrefix = "capsem-guest-v";
    const std::string_view number =
        text->starts_with(kPrefix) ? std::string_view(*text).substr(kPrefix.size()) : "";
    if (number.empty() || number.find_first_not_of("0123456789") != std::string_view::npos)
      diagnostics.error(member.value.place, path, "must have the form capsem-guest-vN");
  }
  for (const std::string_view name : {"min_binary", "guest_abi"})
    if (table.find(name) == nullptr)
      diagnostics.error(table.place, join("compatibility", name), "this key is required");
}

enum class Use : std::uint8_t {
  kept,     // supported by this program, too
  checked,  // validated, then dropped
  foreign,  // used only by the other program; dropped, with a note if it is not empty
};

struct CapsemSection {
  std::string_view name;
  bool required;
  Use use;
  void (*check)(const Node &value, const std::string &name, Diagnostics &diagnostics) = nullptr;
};

// The sections, in the order in which messages list them.
constexpr CapsemSection kCapsemSections[] = {
    {"schema", true, Use::checked},
    {"version", true, Use::checked, check_version},
    {"id", true, Use::kept, check_id},
    {"revision", true, Use::kept, check_revision},
    {"name", true, Use::checked, check_text},
    {"description", true, Use::checked, check_text},
    {"best_for", true, Use::checked, check_text},
    {"profile_type", true, Use::checked, check_type},
    {"ui", true, Use::checked, check_ui},
    {"compatibility", true, Use::checked, check_compatibility},
    {"vm", true, Use::foreign, check_table},
    {"packages", true, Use::foreign, check_table},
    {"tools", true, Use::foreign, check_table},
    {"security", true, Use::kept, check_table},
    {"icon_svg", false, Use::checked, check_text},
    {"extends_profile_id", false, Use::checked, check_id},
    {"extends_profile_revision", false, Use::checked, check_revision},
    {"detect_servers", false, Use::kept},
    {"general", false, Use::foreign, check_table},
    {"appearance", false, Use::foreign, check_table},
    {"editable", false, Use::kept},
    {"ai", false, Use::foreign, check_table},
    {"mcpServers", false, Use::kept, check_table},
    {"skills", false, Use::foreign, check_table},
};
// Allowed only in the corporation's layer.
constexpr CapsemSection kDirectives{"directives", false, Use::kept};

class Reader {
 public:
  Reader(bool corp, Diagnostics &diagnostics) : corp_(corp), diagnostics_(diagnostics) {}

  Node read(Node &&root) {
    check_keys(root);
    Node out(Kind::table, root.place);
    for (Member &member : root.members) {
      const CapsemSection *section = find(member.name);
      if (section == nullptr) continue;
      check(*section, member);
      if (member.name == "security") clean_security(member.value);
      if (member.name == "mcpServers") check_servers(member.value);
      if (section->use == Use::foreign)
        note_dropped(member);
      else if (section->use == Use::kept)
        out.members.push_back(std::move(member));
    }
    if (!dropped_.empty())
      diagnostics_.note(root.place,
                        "unsupported sections are skipped: " + printable(dropped_, 400));
    return out;
  }

 private:
  static const CapsemSection *find(std::string_view name) {
    if (name == kDirectives.name) return &kDirectives;
    const CapsemSection *row =
        std::find_if(std::begin(kCapsemSections), std::end(kCapsemSections),
                     [&](const CapsemSection &known) { return known.name == name; });
    return row == std::end(kCapsemSections) ? nullptr : row;
  }

  void check_keys(const Node &root) {
    std::vector<std::string_view> known;
    for (const CapsemSection &section : kCapsemSections) known.push_back(section.name);
    for (const Member &member : root.members) {
      const CapsemSection *section = find(member.name);
      if (section != nullptr && (corp_ || section != &kDirectives)) continue;
      if (member.name == "mcp")
        diagnostics_.error(
            member.place, "mcp",
            "[mcp.connectors] belongs to an older format; define servers as [mcpServers.ID]",
            kUnknownKey);
      else
        diagnostics_.unknown_key(member, "", known);
    }
    for (const CapsemSection &section : kCapsemSections)
      if (section.required && root.find(section.name) == nullptr)
        diagnostics_.error(root.place, std::string(section.name),
                           "this key is required in a " + std::string(kV2Schema) + " profile");
  }

  void check(const CapsemSection &section, const Member &member) {
    // The parent profile would also have to be signed by the corporation.
    if (corp_ && member.name.starts_with("extends_profile_"))
      diagnostics_.error(
          member.place, member.name,
          "the corporation's profile cannot extend another profile; copy the values into it");
    if (section.check != nullptr) section.check(member.value, member.name, diagnostics_);
  }

  void check_servers(const Node &table) {
    if (table.kind != Kind::table) return;
    for (const Member &server : table.members) {
      // If this is not a table, the error is reported when the section is read.
      if (server.value.kind != Kind::table) continue;
      for (const Member &member : server.value.members)
        if (!contains(kServerKeys, member.name))
          diagnostics_.unknown_key(member, join("mcpServers", server.name), kServerKeys);
    }
  }

  // Keeps only the rules of type "mcp" and the capability "mcp_tools". All others control capsem,
  // not this program.
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
          add_dropped(join("security", member.name) + "." + entry.name);
      }
      std::erase_if(member.value.members, [&](const Member &entry) { return entry.name != ours; });
    }
  }

  void note_dropped(const Member &member) {
    if (!member.value.members.empty()) add_dropped(member.name);
  }
  void add_dropped(const std::string &name) { dropped_ += (dropped_.empty() ? "" : ", ") + name; }

  const bool corp_;
  Diagnostics &diagnostics_;
  std::string dropped_;
};

bool strings_only(const Node &node) {
  return node.kind == Kind::array &&
         std::all_of(node.items.begin(), node.items.end(),
                     [](const Node &item) { return item.kind == Kind::string; });
}

void merge_lists(Node &base, Node &&over) {
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
      merge_lists(found->value, std::move(member.value));
    } else {
      found->value = std::move(member.value);
    }
  }
}

}  // namespace bulkhead::profiles
