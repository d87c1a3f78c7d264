#include "layers/load.hpp"

#include <algorithm>
#include <utility>

#include "layers/canonical.hpp"
#include "layers/project_screen.hpp"
#include "layers/stack.hpp"
#include "profile/revision.hpp"
#include "profile/rule_sections.hpp"
#include "profile/sections.hpp"
#include "profile/show.hpp"

namespace bulkhead {

namespace profiles {

namespace {

constexpr std::string_view kSchema = "bulkhead.profile/1";
constexpr std::size_t kForeignKeys = 8;  // more unknown sections than this: another program's file

// Reports unknown sections; a whole settings file of an editor gets one message, not a hundred.
void check_sections(const Node &root, Diagnostics &diagnostics) {
  std::vector<const Member *> unknown;
  for (const Member &member : root.members)
    if (!known_section(member.name)) unknown.push_back(&member);
  if (unknown.size() <= kForeignKeys) {
    for (const Member *member : unknown) diagnostics.unknown_key(*member, "", section_names());
    return;
  }
  std::string names;
  for (std::size_t i = 0; i < 4; ++i) names += in_quotes(unknown[i]->name) + ", ";
  diagnostics.error(unknown[0]->place, "",
                    "this looks like the settings file of another program (" + names + "... " +
                        std::to_string(unknown.size()) +
                        " unknown keys); \"bulkhead import\" takes the servers out of it",
                    kUnknownKey);
}

void check_schema(const Node &node, Diagnostics &diagnostics) {
  const auto text = diagnostics.string(node, "schema");
  if (text && *text != kSchema)
    diagnostics.error(
        node.place, "schema",
        "this version reads \"" + std::string(kSchema) + "\", not " + in_quotes(*text));
}

// What a profile is called among others; a signed one needs both (corporation/corp_signature.hpp).
void check_identity(const Node &root, Diagnostics &diagnostics) {
  if (const Node *id = root.find("id")) {
    const auto text = diagnostics.string(*id, "id");
    if (text && !is_profile_id(*text))
      diagnostics.error(id->place, "id",
                        "3 to 64 of a-z, 0-9 and '-' are needed, not beginning with '-'");
  }
  if (const Node *revision = root.find("revision")) {
    const auto text = diagnostics.string(*revision, "revision");
    if (text && !is_revision(*text))
      diagnostics.error(revision->place, "revision", "YYYY.MMDD.N is needed, e.g. 2026.0131.1");
  }
}

// Time-outs of the whole gateway obey the ceiling too.
void clamp_timeouts(const Node &place, Context &context) {
  Limits &limits = context.profile.limits;
  for (auto member : {&Limits::call_timeout_ms, &Limits::request_timeout_ms}) {
    if (limits.*member <= limits.timeout_ceiling_ms) continue;
    limits.*member = limits.timeout_ceiling_ms;
    context.diagnostics.note(
        place.place, std::string("limits.") +
                         (member == &Limits::call_timeout_ms ? "call" : "request") +
                         "_timeout_ms is more than timeout_ceiling_ms, which is used instead");
  }
}

void read_profile(const Node &root, const std::vector<RuleLayer> &rules, Context &context) {
  const auto with = [&](std::string_view name, auto read) {
    if (const Node *section = root.find(name)) read(*section, context);
  };
  check_sections(root, context.diagnostics);
  if (const Node *schema = root.find("schema")) check_schema(*schema, context.diagnostics);
  check_identity(root, context.diagnostics);
  with("gateway", read_gateway);
  with("naming", read_naming);
  with("expose", read_expose);
  with("limits", read_limits);
  const Node *limits = root.find("limits");
  clamp_timeouts(limits != nullptr ? *limits : root, context);
  with("connectors", read_connectors);
  with("plugin_dirs", read_plugin_dirs);
  with("state_dir", read_state_dir);
  with("isolation", read_isolation);
  with("approval", read_approval);
  with("pins", read_pins);
  for (const std::string_view group : plugin_groups())
    if (const Node *section = root.find(group))
      read_plugins(group, *section, !rules.empty(), context);
  give_rules(rules, root.find("policies"), context);
  if (const Node *servers = root.find("mcpServers"))
    read_servers(*servers, root.find("tools"), context);
}

}  // namespace

}  // namespace profiles

std::variant<Profile, std::vector<ProfileError>> load_profile(
    const std::vector<ProfileLayer> &layers, const ProfileEnvironment &environment,
    std::vector<ProfileHold> *holds) {
  using namespace profiles;
  Diagnostics diagnostics(layers);
  LayerStack stack(layers, diagnostics);
  if (!stack.merge()) return diagnostics.take_errors();
  Profile profile;
  for (const ProfileLayer &layer : layers) {
    // A profile can hold credentials. One of a repository belongs to what servers work on.
    if (!layer.file.empty() && !layer.project && !layer.detected)
      profile.own_paths.push_back(layer.file);
  }
  Context context{environment, diagnostics, profile};
  read_profile(stack.root, stack.rules, context);
  if (diagnostics.failed()) return diagnostics.take_errors();
  show(stack.root, context);
  add_unapproved(stack.unapproved, context);
  stack.report(&profile, holds);
  profile.notes = diagnostics.take_notes();
  return profile;
}

}  // namespace bulkhead
