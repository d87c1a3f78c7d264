#include "rule_set.hpp"

#include <bulkhead/abi/ext/policy.h>

#include <algorithm>
#include <climits>

#include "json_text.hpp"
#include "uri.hpp"

namespace bulkhead::rules {
namespace {

// Priority of the generated rules that are evaluated after all other rules.
constexpr int kGeneratedLast = 1000;

bool comes_first(const Rule &a, const Rule &b) {
  const bool last_a = a.place.empty() && a.priority == kGeneratedLast;
  const bool last_b = b.place.empty() && b.priority == kGeneratedLast;
  if (last_a != last_b) return last_b;
  if (a.priority != b.priority) return a.priority < b.priority;
  return a.id < b.id;
}

Rule fallback_of(const Drafts &drafts) {
  Rule rule;
  rule.id = "security.rules.mcp.default";
  rule.layer = "generated";
  rule.action = drafts.fallback;
  rule.priority = kGeneratedLast;
  rule.reason = drafts.fallback == Action::allow ? "" : "no rule allows it";
  return rule;
}

std::uint32_t needs_of(const RuleSet &set) {
  std::uint32_t needs = 0;
  const std::vector<Rule> &requests = set.of(Event::request);
  for (const Rule &rule : requests) {
    const bool passes = rule.action == Action::allow && !rule.warned && !rule.over;
    if (requests.size() > 1 || !passes) needs |= BH_POLICY_DECIDES;
    if ((rule.reads & (kArgumentBits | kBesideBits)) != 0 || rule.rewrite)
      needs |= BH_POLICY_READS_ARGUMENTS;
    if ((rule.reads & kDefinitionBits) != 0) needs |= BH_POLICY_READS_DEFINITION;
    if (rule.action == Action::block && !rule.over) needs |= BH_POLICY_FILTERS_LISTS;
    if (!rule.over) continue;
    if (rule.over->what != Budget::What::calls) needs |= BH_POLICY_READS_ARGUMENTS;
    if (rule.over->what == Budget::What::bytes) needs |= BH_POLICY_READS_RESULTS;
  }
  if (!set.of(Event::response).empty()) needs |= BH_POLICY_READS_RESULTS;
  if (!set.of(Event::input_request).empty() || !set.of(Event::input_response).empty())
    needs |= BH_POLICY_JUDGES_INPUT;
  if (!set.of(Event::notification).empty()) needs |= BH_POLICY_JUDGES_NOTIFICATIONS;
  return needs;
}

std::string named(const Rule &rule) {
  return (rule.place.empty() ? "" : rule.place + ": ") + "rule " + rule.id;
}

// Warns about a rule that compares the URI without normalization.
void warn_of_raw_uri(const Rule &rule, std::vector<std::string> *out) {
  if ((rule.reads & (bit(kUri) | bit(kUriNormalized))) != bit(kUri)) return;
  out->push_back(named(rule) +
                 " compares mcp.request.uri, which is not normalized: equivalent forms of the same "
                 "URI do not match; use mcp.request.uri_normalized");
}

// Warns about a rule that compares a normalized URI with a constant that is not normalized.
void warn_of_other_spelling(const Rule &rule, std::vector<std::string> *out) {
  if (!rule.condition) return;
  for (const cel::Program::Demand &demand : rule.condition->demands()) {
    if (demand.slot != kUriNormalized || demand.prefix) continue;
    for (const std::string_view text : demand.texts) {
      const std::string normalized = normalized_uri(text);
      if (normalized == text) continue;
      out->push_back(named(rule) + " compares mcp.request.uri_normalized with \"" +
                     std::string(text) + "\", which never matches: the normalized form is \"" +
                     normalized + "\"");
    }
  }
}

// Warns about a rule that reads members without first testing that they exist. Such a rule rejects
// messages that lack one of these members, because its condition cannot be evaluated.
void warn_of_unguarded_reads(const Rule &rule, std::vector<std::string> *out) {
  if (!rule.condition) return;
  const std::uint64_t may_be_absent = rule.event == Event::response ? bit(kStructured) : 0;
  for (const auto &read : rule.condition->unguarded(environment(rule.event), may_be_absent)) {
    out->push_back(named(rule) + " reads " + read.member +
                   " without has(): a message without this member is rejected "
                   "(security.mcp.evaluation_error). Add `" +
                   read.test + "`");
  }
}

std::vector<std::string> warnings_of(const RuleSet &set) {
  std::vector<std::string> out;
  for (const auto &rules : set.rules) {
    for (const Rule &rule : rules) {
      warn_of_raw_uri(rule, &out);
      warn_of_other_spelling(rule, &out);
      warn_of_unguarded_reads(rule, &out);
    }
  }
  return out;
}

void build_index(const std::vector<Rule> &rules, Index *index) {
  for (std::uint32_t i = 0; i < rules.size(); ++i) index->add(i, rules[i]);
}

}  // namespace

std::string_view to_string(Action action) noexcept {
  constexpr std::string_view names[] = {"allow", "ask", "block", "rewrite"};
  return names[static_cast<std::size_t>(action)];
}

void Index::put(Tools &tools, const std::vector<std::string_view> *names, std::uint32_t number) {
  if (names == nullptr) {
    tools.any.push_back(number);
    return;
  }
  for (const std::string_view name : *names) {
    List &list = tools.by_name[std::string(name)];
    if (list.empty() || list.back() != number) list.push_back(number);
  }
}

void Index::add(std::uint32_t number, const Rule &rule) {
  std::vector<cel::Program::Demand> demands;
  if (rule.condition) demands = rule.condition->demands();
  std::erase_if(demands, [](const cel::Program::Demand &demand) { return demand.prefix; });
  if (rule.by_list) demands.push_back({kServer, {rule.server}, false});
  const std::vector<std::string_view> *servers = nullptr;
  const std::vector<std::string_view> *tools = nullptr;
  for (const cel::Program::Demand &demand : demands) {
    if (demand.slot == kServer && servers == nullptr) servers = &demand.texts;
    if (demand.slot == kTool && tools == nullptr) tools = &demand.texts;
  }
  if (servers == nullptr) return put(any_, tools, number);
  std::vector<std::string_view> distinct = *servers;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  for (const std::string_view server : distinct) put(servers_[std::string(server)], tools, number);
}

bool compile_condition(const Table &table, std::string_view key, std::string_view text,
                       Rule *rule) {
  auto program = cel::Program::compile(text, environment(rule->event), true);
  if (!program) {
    table.fault(key, program.error().to_string());
    return false;
  }
  rule->reads = program->reads();
  rule->condition = std::move(*program);
  for (const cel::Program::Demand &demand : rule->condition->demands()) {
    const bool name = demand.slot == kServer || demand.slot == kTool;
    if (demand.prefix && name)
      rule->begins.emplace_back(static_cast<Root>(demand.slot), demand.texts.front());
  }
  return true;
}

void add_rule(const Table &table, Rule rule, Drafts *out) {
  const bool corp = table.layer().is_corp();
  const auto at = out->rules.find(rule.id);
  if (at != out->rules.end() && at->second.corp && !corp) {
    return table.fault({}, "the corporation's profile has a rule with this name (" +
                               at->second.rule.place + "), which cannot be replaced");
  }
  std::string id = rule.id;
  out->rules.insert_or_assign(std::move(id), RuleDraft{std::move(rule), corp});
}

void put_rule(const Table &table, std::optional<Rule> rule, Drafts *out) {
  if (rule) return add_rule(table, std::move(*rule), out);
  const auto at = out->rules.find(table.path());
  if (at != out->rules.end() && !at->second.corp) out->rules.erase(at);
}

std::expected<RuleSet, std::vector<std::string>> RuleSet::load(std::string_view config_json) {
  Faults faults;
  JsonText config;
  if (const char *why = config.parse(config_json); why != nullptr || !config.value().IsObject()) {
    return std::unexpected(std::vector<std::string>{std::string("the configuration is invalid: ") +
                                                    (why != nullptr ? why : "no table")});
  }
  Drafts drafts;
  const std::vector<Layer> layers = layers_of(config.value(), &faults);
  for (const Layer &layer : layers) {
    if (const rapidjson::Value *security = member(*layer.sections, "security")) {
      read_security(Table(layer, "security", *security, faults), &drafts);
    }
    read_match_rules(layer, &drafts, &faults);
  }
  if (drafts.rules.size() > kMaxRules) faults.add("the profile has more than 10000 rules");
  if (faults.any()) return std::unexpected(faults.texts());
  RuleSet set;
  set.legacy = drafts.legacy;
  set.values_at_once = drafts.values_at_once;
  set.refuses_large = drafts.refuses_large;
  for (auto &[id, draft] : drafts.rules) {
    auto &list = set.of(draft.rule.event);
    list.push_back(std::move(draft.rule));
  }
  std::vector<Rule> &requests = set.of(Event::request);
  requests.push_back(fallback_of(drafts));
  for (auto &list : set.rules) std::sort(list.begin(), list.end(), comes_first);
  // The default rule comes last, after the rules that are generated from allow lists.
  const auto fallback = std::find_if(requests.begin(), requests.end(), [](const Rule &rule) {
    return rule.id == "security.rules.mcp.default";
  });
  std::rotate(fallback, fallback + 1, requests.end());
  for (std::size_t i = 0; i < kEvents; ++i) build_index(set.rules[i], &set.indexes[i]);
  set.needs = needs_of(set);
  set.warnings = warnings_of(set);
  return set;
}

}  // namespace bulkhead::rules
