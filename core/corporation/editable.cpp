#include "corporation/editable.hpp"

#include <algorithm>

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kSections[] = {"general",       "appearance", "ai",
                                          "mcpServers",    "skills",     "packages",
                                          "tools",         "vm",         "security_capabilities",
                                          "security_rules"};

std::vector<std::vector<std::string>> paths_of(const std::string &section) {
  if (section == "mcpServers" || section == "tools") return {{section}};
  if (section == "security_capabilities")
    return {{"security", "capabilities"}, {"security", "default"}};
  if (section == "security_rules")
    return {{"security", "rules"}, {"security", "servers"}, {"profiles"}, {"default"}};
  return {};
}

}  // namespace

std::vector<Fixed> read_editable(const Node &layer, Diagnostics &diagnostics) {
  std::vector<Fixed> out;
  const Node *table = layer.find("editable");
  if (table == nullptr || !diagnostics.is_table(*table, "editable")) return out;
  for (const Member &member : table->members) {
    if (std::find(std::begin(kSections), std::end(kSections), member.name) == std::end(kSections)) {
      diagnostics.unknown_key(member, "editable", kSections);
      continue;
    }
    const auto flag = diagnostics.boolean(member.value, join("editable", member.name));
    if (flag && !*flag) out.push_back({paths_of(member.name), member.name, member.place});
  }
  return out;
}

}  // namespace bulkhead::profiles
