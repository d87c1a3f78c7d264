// Reads the tables of plugin instances: [transports.ID], [tools.ID], [policies.ID] ...
#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "bulkhead/cpp/text.hpp"
#include "profile/expand.hpp"
#include "profile/keys.hpp"
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
// A group of plugin tables, and the member of the profile into which it is read.
struct Group {
  std::string_view name;
  std::vector<PluginUse> Profile::*uses;
};
constexpr Group kGroups[] = {
    {"transports", &Profile::transports}, {"tools", &Profile::tools},
    {"policies", &Profile::policies},     {"telemetry", &Profile::telemetry},
    {"services", &Profile::services},
};

std::vector<PluginUse> &uses_of(std::string_view group, Profile &profile) {
  const Group *row = std::find_if(std::begin(kGroups), std::end(kGroups),
                                  [&](const Group &known) { return known.name == group; });
  return profile.*row->uses;
}

// Expands ${env:NAME} in one string of a plugin's configuration. `unused` is true if the caller
// does not start the plugin.
void expand_string(Node &node, const std::string &path, bool unused, Context &context) {
  Expanded result = expand(node.text, ExpandMode::env_only, context.environment);
  bool kept = false;
  for (Expanded::Problem &problem : result.problems) {
    if (problem.missing && unused) {
      kept = true;
      context.diagnostics.note(
          node.place,
          path + ": " + problem.what + ". The gateway does not start without this variable");
    } else {
      context.diagnostics.error(node.place, path, std::move(problem.what),
                                problem.missing ? kMissingVariable : kInvalidSchema);
    }
  }
  if (!kept) node.text = std::move(result.text);
}

// Expands ${env:NAME} in all strings of a plugin's configuration, in place. kProfileDepth limits
// the recursion.
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

// Sets of groups, as bit masks.
enum : unsigned { kTools = 1, kPolicies = 2, kTelemetry = 4, kAnyGroup = ~0u };

unsigned set_of(std::string_view group) {
  static constexpr std::pair<std::string_view, unsigned> kSets[] = {
      {"tools", kTools}, {"policies", kPolicies}, {"telemetry", kTelemetry}};
  for (const auto &[name, set] : kSets)
    if (name == group) return set;
  return 0;
}

// The state of reading one instance. Keys that the host does not know belong to the plugin.
struct PluginReader {
  const unsigned group;
  PluginUse use{};
  bool enabled = true;
  std::string with_rules{};  // plugin to use instead if the profile has rules
  Node config{Kind::table, {}};

  operator PluginUse &() { return use; }
  bool judges() const { return (group & (kPolicies | kTelemetry)) != 0; }
};
using PluginKey = Key<PluginReader>;

std::optional<std::string> plugin_name(const KeyValue &input) {
  auto text = input.diagnostics().string(input.value(), input.path);
  if (text && text->find('/') != std::string::npos)
    return resolve_path(*text, input.value().place, input.context);
  if (!text || !text->empty()) return text;
  input.reject("must be the name or path of a plugin");
  return std::nullopt;
}

void read_plugin_name(const PluginKey &, const KeyValue &input, PluginReader &reader) {
  if (auto name = plugin_name(input)) reader.use.plugin = *std::move(name);
}

void read_with_rules(const PluginKey &, const KeyValue &input, PluginReader &reader) {
  if (auto name = plugin_name(input)) reader.with_rules = *std::move(name);
}

void check_rules(const PluginKey &, const KeyValue &input, PluginReader &) {
  // Checks only the type. give_rules() uses the value.
  input.diagnostics().boolean(input.value(), input.path);
}

void reject_rules_member(const PluginKey &, const KeyValue &input, PluginReader &) {
  input.reject_key(
      "this key is generated from the profile's rules; write rules as [security.rules...]");
}

void read_enabled(const PluginKey &, const KeyValue &input, PluginReader &reader) {
  const auto on = input.diagnostics().boolean(input.value(), input.path);
  if (on && !*on) reader.enabled = false;
}

void read_disabled(const PluginKey &, const KeyValue &input, PluginReader &reader) {
  const auto off = input.diagnostics().boolean(input.value(), input.path);
  if (off && *off) reader.enabled = false;
}

void read_sha256(const PluginKey &, const KeyValue &input, PluginReader &reader) {
  auto text = input.diagnostics().string(input.value(), input.path);
  if (!text) return;
  *text = bh::lowered(*text);
  if (text->size() != 64 || !bh::is_lower_hex(*text))
    input.reject("must be 64 hexadecimal digits");
  else
    reader.use.sha256 = *std::move(text);
}

void read_tools_compartment(const PluginKey &, const KeyValue &input, PluginReader &reader) {
  read_compartment(input.member, input.path, &reader.use.compartment, input.context);
}

std::string refused_own_compartment(const std::string &text) {
  return text == "own" || text == "endpoint" ? "" : "must be \"own\" or \"endpoint\"";
}

void read_grants(const PluginKey &, const KeyValue &input, PluginReader &reader) {
  auto list = input.diagnostics().strings(input.value(), input.path);
  if (!list) return;
  const bool tools = (reader.group & kTools) != 0;
  for (const std::string &grant : *list) {
    const bool network = granted_port(grant) && (reader.judges() || tools);
    if (network || (grant == "control" && !reader.judges())) continue;
    const std::string_view known = reader.judges() ? "network, network:PORT"
                                   : tools         ? "control, network, network:PORT"
                                                   : "control";
    input.reject("unknown value " + in_quotes(grant) + "; allowed: " + std::string(known));
  }
  reader.use.grants = *std::move(list);
}

struct HostKey {
  PluginKey key;
  // The groups in which the host reads the key. In other groups, the key belongs to the plugin.
  unsigned groups = kAnyGroup;
};
constexpr HostKey kHostKeys[] = {
    {custom<PluginReader>("plugin", read_plugin_name)},
    {custom<PluginReader>("with_rules", read_with_rules), kPolicies},
    {custom<PluginReader>("rules", check_rules), kPolicies},
    {custom<PluginReader>(kRulesMember, reject_rules_member), kPolicies},
    {flag<&PluginUse::required, PluginReader>("required")},
    {flag<&PluginUse::watch, PluginReader>("watch"), kTools | kPolicies},
    {custom<PluginReader>("enabled", read_enabled)},
    {custom<PluginReader>("disabled", read_disabled)},
    {custom<PluginReader>("sha256", read_sha256)},
    {custom<PluginReader>("compartment", read_tools_compartment), kTools},
    {text<&PluginUse::compartment, PluginReader>("compartment", refused_own_compartment),
     kPolicies | kTelemetry},
    {custom<PluginReader>("grants", read_grants)},
};

void read_member(const Member &member, const std::string &path, Context &context,
                 PluginReader &reader) {
  const HostKey *row =
      std::find_if(std::begin(kHostKeys), std::end(kHostKeys), [&](const HostKey &known) {
        return known.key.name == member.name &&
               (known.groups == kAnyGroup || (known.groups & reader.group) != 0);
      });
  if (row == std::end(kHostKeys))
    reader.config.members.push_back(member);
  else
    row->key.read(row->key, {member, join(path, member.name), context}, reader);
}

}  // namespace

void read_compartment(const Member &member, const std::string &path, std::string *out,
                      Context &context) {
  const auto text = context.diagnostics.string(member.value, path);
  if (!text) return;
  const bool letters =
      text->find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
  if (!letters || text->empty() || text->size() > 32 || *text == "endpoint" ||
      *text == "supervisor") {
    context.diagnostics.error(
        member.value.place, path,
        "must be \"own\", or a name of 1 to 32 characters from a-z, 0-9 and '-' "
        "other than \"endpoint\" and \"supervisor\"");
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
  if (group != "tools") any.prefix = false;  // only tools plugins become servers
  if (std::string why = refused_name(instance.name, any, true); !why.empty()) {
    diagnostics.error(instance.place, path, "the instance is invalid: " + why);
    return;
  }
  if (!diagnostics.is_table(instance.value, path)) return;
  PluginReader reader{set_of(group)};
  const std::size_t errors = diagnostics.count();
  for (const Member &member : instance.value.members) read_member(member, path, context, reader);
  if (!reader.enabled) return;
  if (reader.use.plugin.empty() && instance.value.find("plugin") == nullptr) {
    diagnostics.error(
        instance.place, path,
        "the key \"plugin\" is missing: set it to a plugin name, or a path with a slash");
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

// Keeps only the policies from the highest layer that has any, and sorts them in file order, which
// is the order of evaluation.
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
                            "more than " + std::to_string(kMaxPolicies) +
                                " policies are enabled (" + std::to_string(policies.size()) +
                                "): disable some with enabled = false");
}

}  // namespace

std::span<const std::string_view> plugin_groups() {
  static constexpr auto kNames = [] {
    std::array<std::string_view, std::size(kGroups)> out;
    std::transform(std::begin(kGroups), std::end(kGroups), out.begin(),
                   [](const Group &group) { return group.name; });
    return out;
  }();
  return kNames;
}

std::vector<std::string_view> plugin_keys() {
  std::vector<std::string_view> out;
  for (const HostKey &row : kHostKeys)
    if (row.key.name != kRulesMember) out.push_back(row.key.name);
  return out;
}

void read_plugins(std::string_view group, const Node &table, bool rules, Context &context) {
  if (!context.diagnostics.is_table(table, std::string(group))) return;
  for (const Member &instance : table.members) read_plugin(group, instance, rules, context);
  if (group == "policies") keep_highest_policies(table, context);
}

}  // namespace bulkhead::profiles
