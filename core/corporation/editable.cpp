#include "corporation/editable.hpp"

#include <algorithm>

namespace bulkhead::profiles {

namespace {

struct Section {
  std::string_view name;
  // The paths of the section's keys. Empty if this program does not use the section.
  std::vector<std::vector<std::string>> paths;
};

const std::vector<Section> &sections() {
  static const std::vector<Section> all = {
      {"general", {}},
      {"appearance", {}},
      {"ai", {}},
      {"mcpServers", {{"mcpServers"}}},
      {"skills", {}},
      {"packages", {}},
      {"tools", {{"tools"}}},
      {"vm", {}},
      {"security_capabilities", {{"security", "capabilities"}, {"security", "default"}}},
      {"security_rules",
       {{"security", "rules"}, {"security", "servers"}, {"profiles"}, {"default"}}},
  };
  return all;
}

}  // namespace

std::vector<LockedSection> read_editable(const Node &layer, Diagnostics &diagnostics) {
  std::vector<LockedSection> out;
  const Node *table = layer.find("editable");
  if (table == nullptr || !diagnostics.is_table(*table, "editable")) return out;
  for (const Member &member : table->members) {
    const auto section = std::find_if(sections().begin(), sections().end(),
                                      [&](const Section &s) { return s.name == member.name; });
    if (section == sections().end()) {
      std::vector<std::string_view> names;
      for (const Section &known : sections()) names.push_back(known.name);
      diagnostics.unknown_key(member, "editable", names);
      continue;
    }
    const auto flag = diagnostics.boolean(member.value, join("editable", member.name));
    if (flag && !*flag) out.push_back({section->paths, member.name, member.place});
  }
  return out;
}

}  // namespace bulkhead::profiles
