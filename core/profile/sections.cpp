#include "profile/sections.hpp"

#include <algorithm>

#include "profile/revision.hpp"
#include "profile/rule_sections.hpp"
#include "profile/settings.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kSchema = "bulkhead.profile/1";
// If a file has more unknown keys than this, it is assumed to belong to another program.
constexpr std::size_t kForeignKeys = 8;

void read_schema(const Node &node, Context &context) {
  const auto text = context.diagnostics.string(node, "schema");
  if (text && *text != kSchema)
    context.diagnostics.error(
        node.place, "schema",
        "the supported schema is \"" + std::string(kSchema) + "\", not " + in_quotes(*text));
}

void read_id(const Node &node, Context &context) {
  const auto text = context.diagnostics.string(node, "id");
  if (text && !is_profile_id(*text))
    context.diagnostics.error(
        node.place, "id",
        "must have 3 to 64 characters from a-z, 0-9 and '-', and must not begin with '-'");
}

void read_revision(const Node &node, Context &context) {
  const auto text = context.diagnostics.string(node, "revision");
  if (text && !is_revision(*text))
    context.diagnostics.error(node.place, "revision",
                              "must have the form YYYY.MMDD.N, e.g. 2026.0131.1");
}

void read_connectors(const Node &table, Context &context) {
  if (!context.diagnostics.is_table(table, "connectors")) return;
  for (const Member &member : table.members) {
    const std::string path = join("connectors", member.name);
    auto plugin = context.diagnostics.string(member.value, path);
    if (!plugin) continue;
    if (plugin->empty() || member.name.empty()) {
      context.diagnostics.error(member.value.place, path,
                                "must map a server type to the name or path of a plugin");
      continue;
    }
    const bool is_path = plugin->find('/') != std::string::npos;
    context.profile.connectors[member.name] =
        is_path ? resolve_path(*plugin, member.value.place, context) : std::move(*plugin);
  }
}

void read_plugin_dirs(const Node &array, Context &context) {
  const auto dirs = context.diagnostics.strings(array, "plugin_dirs");
  if (!dirs) return;
  context.profile.plugin_dirs.clear();
  for (std::size_t i = 0; i < dirs->size(); ++i) {
    // The items may come from different layers, so each has its own location.
    const std::string &dir = (*dirs)[i];
    const Place &place = array.items[i].place;
    if (dir.empty())
      context.diagnostics.error(place, "plugin_dirs", "an empty path is not allowed");
    else
      context.profile.plugin_dirs.push_back(resolve_path(dir, place, context));
  }
}

void read_state_dir(const Node &text, Context &context) {
  const auto dir = context.diagnostics.string(text, "state_dir");
  if (!dir) return;
  if (dir->empty())
    context.diagnostics.error(text.place, "state_dir", "an empty path is not allowed");
  else
    context.profile.state_dir = resolve_path(*dir, text.place, context);
}

struct Section {
  std::string_view name;
  // null if read_profile() does not use this table to read the section
  void (*read)(const Node &node, Context &context) = nullptr;
};

// All sections, in the order in which messages list them.
constexpr Section kSections[] = {
    {"schema", read_schema},
    {"gateway", read_gateway},
    {"mcpServers"},
    {"naming", read_naming},
    {"expose", read_expose},
    {"limits", read_limits},
    {"transports"},
    {"tools"},
    {"policy"},
    {"policies"},
    {"telemetry"},
    {"services"},
    {"connectors", read_connectors},
    {"plugin_dirs", read_plugin_dirs},
    {"plugin_trust", read_plugin_trust},
    {"state_dir", read_state_dir},
    {"isolation", read_isolation},
    {"approval", read_approval},
    {"pins", read_pins},
    {"security"},
    {"corp"},
    {"profiles"},
    {"default"},
    {"id", read_id},
    {"revision", read_revision},
    {"editable"},
    {"detect_servers"},
};

// Returns the client whose settings file this is, or an empty view.
std::string_view program_of(const std::vector<const Member *> &unknown,
                            const Diagnostics &diagnostics) {
  if (unknown.empty()) return {};
  if (diagnostics.origin(unknown[0]->place).file.ends_with(".codex/config.toml")) return "Codex";
  for (const Member *member : unknown)
    if (member->name == "context_servers") return "Zed";
  return {};
}

// Reports unknown sections. If the file appears to be a settings file of another program, reports
// only a single error.
void check_sections(const Node &root, Diagnostics &diagnostics) {
  std::vector<const Member *> unknown;
  for (const Member &member : root.members)
    if (!known_section(member.name)) unknown.push_back(&member);
  const std::string_view program = program_of(unknown, diagnostics);
  if (!program.empty()) {
    diagnostics.error(unknown[0]->place, "",
                      "this looks like the settings file of " + std::string(program) + " (" +
                          in_quotes(unknown[0]->name) +
                          "); use `bulkhead import` to import its servers",
                      kUnknownKey);
    return;
  }
  if (unknown.size() <= kForeignKeys) {
    for (const Member *member : unknown) diagnostics.unknown_key(*member, "", section_names());
    return;
  }
  std::string names;
  for (std::size_t i = 0; i < 4; ++i) names += in_quotes(unknown[i]->name) + ", ";
  diagnostics.error(unknown[0]->place, "",
                    "this looks like the settings file of another program (" + names + "... " +
                        std::to_string(unknown.size()) +
                        " unknown keys); use \"bulkhead import\" to import its servers",
                    kUnknownKey);
}

}  // namespace

std::span<const std::string_view> section_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const Section &section : kSections) out.push_back(section.name);
    return out;
  }();
  return names;
}

bool known_section(std::string_view name) {
  const auto names = section_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

void read_profile(const Node &root, const std::vector<RuleLayer> &rules, Context &context) {
  check_sections(root, context.diagnostics);
  for (const Section &section : kSections) {
    const Node *node = section.read == nullptr ? nullptr : root.find(section.name);
    if (node != nullptr) section.read(*node, context);
  }
  for (const std::string_view group : plugin_groups())
    if (const Node *section = root.find(group))
      read_plugins(group, *section, !rules.empty(), context);
  give_rules(rules, root.find("policies"), context);
  if (const Node *servers = root.find("mcpServers"))
    read_servers(*servers, root.find("tools"), context);
}

}  // namespace bulkhead::profiles
