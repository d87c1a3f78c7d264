// The tables of plugin instances: [transports.ID], [tools.ID], [policies.ID] ...
#include <algorithm>
#include <charconv>
#include <tuple>
#include <unordered_map>

#include "profile/expand.hpp"
#include "profile/rule_sections.hpp"
#include "profile/sections.hpp"

namespace bulkhead {

std::optional<std::uint16_t> granted_port(std::string_view grant) {
  constexpr std::string_view word = "network";
  if (!grant.starts_with(word)) return std::nullopt;
  grant.remove_prefix(word.size());
  if (grant.empty()) return 0;
  std::uint16_t port = 0;
  const char *const end = grant.data() + grant.size();
  const auto [at, error] = std::from_chars(grant.data() + 1, end, port);
  const bool good = grant.front() == ':' && error == std::errc() && at == end && port != 0;
  return good ? std::optional(port) : std::nullopt;
}

}  // namespace bulkhead

namespace bulkhead::profiles {

namespace {

constexpr std::size_t kMaxPolicies = 8;
constexpr std::string_view kGroups[] = {"transports", "tools", "policies", "telemetry", "services"};

std::vector<PluginUse> &uses_of(std::string_view group, Profile &profile) {
  if (group == "transports") return profile.transports;
  if (group == "tools") return profile.tools;
  if (group == "policies") return profile.policies;
  if (group == "telemetry") return profile.telemetry;
  return profile.services;
}

// Expands ${env:NAME} in one string of a plugin's configuration. `unused`: whoever loads the
// profile does not start this plugin.
void expand_string(Node &node, const std::string &path, bool unused, Context &context) {
  Expanded result = expand(node.text, ExpandMode::env_only, context.environment);
  bool kept = false;
  for (Expanded::Problem &problem : result.problems) {
    if (problem.missing && unused) {
      kept = true;
      context.diagnostics.note(
          node.place, path + ": " + problem.what + ". A gateway does not start without it");
    } else {
      context.diagnostics.error(node.place, path, std::move(problem.what),
                                problem.missing ? kMissingVariable : kInvalidSchema);
    }
  }
  if (!kept) node.text = std::move(result.text);
}

// Expands ${env:NAME} in all strings of a plugin's configuration, in place. Depth is bounded by
// kProfileDepth.
void expand_strings(Node &node, const std::string &path, bool unused, Context &context) {
  if (node.kind == Kind::string) {
    expand_string(node, path, unused, context);
  } else if (node.kind == Kind::date) {
    context.diagnostics.error(node.place, path, "dates are not supported; write a string");
  }
  for (std::size_t i = 0; i < node.items.size(); ++i)
    expand_strings(node.items[i], path + '[' + std::to_string(i) + ']', unused, context);
  for (Member &member : node.members)
    expand_strings(member.value, join(path, member.name), unused, context);
}

bool unused(std::string_view group, ProfileUse use) {
  return use == ProfileUse::none || (use == ProfileUse::but_transports && group == "transports");
}

std::string wrong_sha256(std::string &text) {
  for (char &c : text)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  const bool hex = text.find_first_not_of("0123456789abcdef") == std::string::npos;
  return hex && text.size() == 64 ? std::string() : "64 hexadecimal digits are needed";
}

// Takes the keys that are ours; the others are the plugin's.
struct PluginReader {
  Context &context;
  const std::string_view group;
  const std::string &path;
  PluginUse use;
  bool enabled = true;
  Node config{Kind::table, {}};

  std::string with_rules{};  // the plugin that takes this one's place when there are rules

  bool judges() const { return group == "policies" || group == "telemetry"; }

  void take(const Member &member) {
    Diagnostics &diagnostics = context.diagnostics;
    const std::string key = join(path, member.name);
    if (member.name == "plugin") {
      auto text = diagnostics.string(member.value, key);
      if (text && text->find('/') != std::string::npos)
        use.plugin = resolve_path(*text, member.value.place, context);
      else if (text && !text->empty())
        use.plugin = std::move(*text);
      else if (text)
        diagnostics.error(member.value.place, key, "the name or path of a plugin is needed");
    } else if (member.name == "with_rules" && group == "policies") {
      auto text = diagnostics.string(member.value, key);
      if (text && !text->empty())
        with_rules = text->find('/') == std::string::npos
                         ? std::move(*text)
                         : resolve_path(*text, member.value.place, context);
      else if (text)
        diagnostics.error(member.value.place, key, "the name or path of a plugin is needed");
    } else if (member.name == "rules" && group == "policies") {
      static_cast<void>(diagnostics.boolean(member.value, key));  // give_rules() looks at it
    } else if (member.name == kRulesMember && group == "policies") {
      diagnostics.error(member.place, key,
                        "this is made of the profile's rules; write them as [security.rules...]");
    } else if (member.name == "required" || member.name == "enabled" || member.name == "disabled") {
      const auto flag = diagnostics.boolean(member.value, key);
      if (!flag) return;
      if (member.name == "required")
        use.required = *flag;
      else if (*flag == (member.name == "disabled"))
        enabled = false;
    } else if (member.name == "sha256") {
      auto text = diagnostics.string(member.value, key);
      if (!text) return;
      if (std::string why = wrong_sha256(*text); !why.empty())
        diagnostics.error(member.value.place, key, std::move(why));
      else
        use.sha256 = std::move(*text);
    } else if (member.name == "compartment" && group == "tools") {
      read_compartment(member, key, &use.compartment, context);
    } else if (member.name == "compartment" && judges()) {
      auto text = diagnostics.string(member.value, key);
      if (text && *text != "own" && *text != "endpoint")
        diagnostics.error(member.value.place, key, "\"own\" or \"endpoint\" is needed");
      else if (text)
        use.compartment = std::move(*text);
    } else if (member.name == "grants") {
      auto list = diagnostics.strings(member.value, key);
      if (!list) return;
      for (const std::string &grant : *list) {
        const bool network = granted_port(grant) && (judges() || group == "tools");
        if (network || (grant == "control" && !judges())) continue;
        const std::string_view known = judges()           ? "network, network:PORT"
                                       : group == "tools" ? "control, network, network:PORT"
                                                          : "control";
        diagnostics.error(member.value.place, key,
                          in_quotes(grant) + " is not known; allowed: " + std::string(known));
      }
      use.grants = std::move(*list);
    } else {
      config.members.push_back(member);
    }
  }
};

}  // namespace

void read_compartment(const Member &member, const std::string &path, std::string *out,
                      Context &context) {
  const auto text = context.diagnostics.string(member.value, path);
  if (!text) return;
  const bool letters =
      text->find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  if (!letters || text->empty() || text->size() > 32 || *text == "endpoint" ||
      *text == "supervisor") {
    context.diagnostics.error(member.value.place, path,
                              "\"own\" or a name of 1 to 32 characters of a-z, 0-9 and '-' is "
                              "needed, and not \"endpoint\" or \"supervisor\"");
    return;
  }
  *out = *text;
}

namespace {

void read_plugin(std::string_view group, const Member &instance, bool rules, Context &context) {
  const std::string path = join(std::string(group), instance.name);
  Diagnostics &diagnostics = context.diagnostics;
  Naming any = context.profile.naming;
  any.strict_names = false;
  if (group != "tools") any.prefix = false;  // only these become names of servers
  if (std::string why = refused_name(instance.name, any, true); !why.empty()) {
    diagnostics.error(instance.place, path, "the instance is refused: " + why);
    return;
  }
  if (!diagnostics.is_table(instance.value, path)) return;
  PluginReader reader{context, group, path, {}};
  const std::size_t errors = diagnostics.count();
  for (const Member &member : instance.value.members) reader.take(member);
  if (!reader.enabled) return;
  if (reader.use.plugin.empty() && instance.value.find("plugin") == nullptr) {
    diagnostics.error(
        instance.place, path,
        "the key \"plugin\" is missing: the name of a plugin, or a path with a slash");
    return;
  }
  expand_strings(reader.config, path, unused(group, context.environment.use), context);
  if (diagnostics.count() > errors) return;
  if (rules && !reader.with_rules.empty()) reader.use.plugin = reader.with_rules;
  reader.use.id = instance.name;
  reader.use.origin = diagnostics.origin(instance.place);
  append_json(reader.use.config_json, reader.config);
  uses_of(group, context.profile).push_back(std::move(reader.use));
}

// The highest layer's replace those below it. They are asked in the order of the file.
void keep_highest_policies(const Node &table, Context &context) {
  auto &policies = context.profile.policies;
  std::unordered_map<std::string_view, Place> places;
  for (const Member &member : table.members) places.emplace(member.name, member.place);
  std::uint16_t highest = 0;
  for (const PluginUse &use : policies) highest = std::max(highest, places[use.id].layer);
  std::erase_if(policies, [&](const PluginUse &use) { return places[use.id].layer < highest; });
  std::sort(policies.begin(), policies.end(), [&](const PluginUse &a, const PluginUse &b) {
    const Place &one = places[a.id], &other = places[b.id];
    return std::tie(one.line, one.column, a.id) < std::tie(other.line, other.column, b.id);
  });
  if (policies.size() <= kMaxPolicies) return;
  context.diagnostics.error(table.place, "policies",
                            "at most " + std::to_string(kMaxPolicies) +
                                " policies are possible, and " + std::to_string(policies.size()) +
                                " are there: disable the others with enabled = false");
}

}  // namespace

std::span<const std::string_view> plugin_groups() {
  return kGroups;
}

void read_plugins(std::string_view group, const Node &table, bool rules, Context &context) {
  if (!context.diagnostics.is_table(table, std::string(group))) return;
  for (const Member &instance : table.members) read_plugin(group, instance, rules, context);
  if (group == "policies") keep_highest_policies(table, context);
}

}  // namespace bulkhead::profiles
