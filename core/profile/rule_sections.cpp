#include "profile/rule_sections.hpp"

#include <algorithm>
#include <string>

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kRuleSections[] = {"security", "corp", "profiles", "default"};

class Writer {
 public:
  explicit Writer(Context &context) : context_(context) {}

  std::string layer(const RuleLayer &rules) {
    const Origin origin = context_.diagnostics.origin(rules.sections.place);
    std::string out = "{\"layer\":";
    append_json_string(out, origin.layer);
    out += ",\"file\":";
    append_json_string(out, origin.file);
    out += ",\"sections\":";
    append_json(out, rules.sections);
    for (const Member &section : rules.sections.members) note(section, "");
    return out + ",\"lines\":{" + lines_ + "}}";
  }

 private:
  // kProfileDepth limits the recursion.
  void note(const Member &member, const std::string &above) {
    const std::string path = join(above, member.name, std::string::npos);
    lines_ += lines_.empty() ? "" : ",";
    append_json_string(lines_, path);
    lines_ += ':' + std::to_string(member.place.line);
    check(member.value, path);
    for (const Member &below : member.value.members) note(below, path);
  }

  void check(const Node &node, const std::string &path) {
    if (node.kind == Kind::date)
      context_.diagnostics.error(node.place, path, "dates are not supported; write a string");
    for (const Node &item : node.items) check(item, path);
  }

  Context &context_;
  std::string lines_;
};

}  // namespace

std::span<const std::string_view> rule_sections() {
  return kRuleSections;
}

void collect_rules(const Node &layer, std::uint16_t index, std::vector<RuleLayer> *out) {
  Place place;
  place.layer = index;
  RuleLayer rules{index, Node(Kind::table, place)};
  for (const Member &section : layer.members) {
    if (std::find(std::begin(kRuleSections), std::end(kRuleSections), section.name) !=
        std::end(kRuleSections))
      rules.sections.members.push_back(section);
  }
  if (!rules.sections.members.empty()) out->push_back(std::move(rules));
}

void give_rules(const std::vector<RuleLayer> &rules, const Node *table, Context &context) {
  if (rules.empty()) return;
  for (const RuleLayer &layer : rules) {
    for (const Member &section : layer.sections.members)
      if (!context.diagnostics.is_table(section.value, section.name)) return;
  }
  auto &policies = context.profile.policies;
  const auto judges = [&](const PluginUse &use) {
    const Node *instance = table == nullptr ? nullptr : table->find(use.id);
    const Node *wanted = instance == nullptr ? nullptr : instance->find("rules");
    return wanted == nullptr || wanted->kind != Kind::boolean || wanted->flag;
  };
  if (std::none_of(policies.begin(), policies.end(), judges)) {
    const Member &first = rules.front().sections.members.front();
    context.diagnostics.error(first.place, first.name,
                              "the profile has rules, but no policy plugin evaluates them: "
                              "add one as [policies.ID] with plugin = \"...\"");
    return;
  }
  std::string json;
  for (const RuleLayer &layer : rules)
    json += (json.empty() ? "" : ",") + Writer(context).layer(layer);
  for (PluginUse &use : policies) {
    if (!judges(use)) continue;
    std::string &config = use.config_json;  // a JSON object
    config.pop_back();
    if (config.size() > 1) config += ',';
    append_json_string(config, kRulesMember);
    config += ":[" + json + "]}";
  }
}

}  // namespace bulkhead::profiles
