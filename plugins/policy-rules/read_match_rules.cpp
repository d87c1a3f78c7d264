// Reads match/action rules from [corp.rules.ID], [profiles.rules.ID] and [default.ID].
#include <algorithm>

#include "json_text.hpp"
#include "match_condition.hpp"
#include "rule_reader.hpp"

namespace bulkhead::rules {
namespace {

constexpr std::string_view kMatchRuleKeys[] = {"name",        "action",          "match",
                                               "enabled",     "detection_level", "priority",
                                               "corp_locked", "reason",          "managed"};
constexpr std::string_view kOldKeys[] = {"on", "if", "decision", "actions", "level", "plugin"};
constexpr std::string_view kLevels[] = {"informational", "low", "medium", "high", "critical"};
constexpr std::string_view kManaged[] = {"kind", "server", "tool", "operation"};
constexpr int kDefaultPriority = 1001;

enum class Section { corp, profiles, fallback };

bool good_id(std::string_view id) {
  return !id.empty() && id.size() <= 64 &&
         id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") == std::string_view::npos;
}

template <std::size_t N>
bool among(const std::string_view (&known)[N], std::string_view word) {
  return std::find(std::begin(known), std::end(known), word) != std::end(known);
}

class MatchRuleReader : RuleReader {
 public:
  MatchRuleReader(const Table &table, Section section) : RuleReader(table), section_(section) {}

  std::optional<Rule> read() {
    for (const std::string_view key : kOldKeys) {
      if (table_.find(key) == nullptr) continue;
      fault(key,
            "this key belongs to the other rule syntax; use match and action here (on, if and "
            "decision belong to [security.rules.mcp.NAME])");
      return std::nullopt;
    }
    table_.only(kMatchRuleKeys);
    names();
    condition();
    action();
    priority();
    if (table_.flag("corp_locked").value_or(false) && section_ != Section::corp) {
      fault("corp_locked",
            "only rules in the corporation's profile can be locked; remove this key");
    }
    return finish();
  }

 private:
  void names() {
    if (const auto name = table_.text("name"); name && !good_id(*name))
      fault("name", "must have 1 to 64 characters from a-z, 0-9, '_' and '-'");
    if (const auto level = table_.text("detection_level"); level && !among(kLevels, *level))
      fault("detection_level", "must be informational, low, medium, high or critical");
    if (table_.find("managed") != nullptr) {
      const Table managed = table_.table("managed");
      if (managed.is_table()) managed.only(kManaged);
    }
  }

  void condition() {
    const auto text = table_.text("match");
    if (!text) {
      if (table_.find("match") == nullptr)
        fault("match", "the key \"match\" (a condition) is required");
      failed_ = true;
      return;
    }
    const auto condition = match_condition(*text);
    if (!condition) return fault("match", "1:" + condition.error());
    rule_.event = condition->event;
    failed_ = !compile_condition(table_, "match", condition->cel, &rule_) || failed_;
  }

  void action() {
    const auto text = table_.text("action");
    if (text == "allow") {
      rule_.action = Action::allow;
    } else if (text == "block") {
      rule_.action = Action::block;
    } else if (text == "ask" && rule_.event == Event::response) {
      fault("action", "approval is not supported for responses");
    } else if (text == "ask") {
      rule_.action = Action::ask;
    } else if (text == "rewrite" || text == "redact" || text == "mutate" || text == "neutralize") {
      fault("action",
            "this syntax cannot express rewrites; write the rule as "
            "[security.rules.mcp.NAME] with rewrite_target and rewrite_value");
    } else if (text == "preprocess" || text == "postprocess") {
      fault("action", "this gateway does not support this action");
    } else {
      fault("action", "must be \"allow\", \"ask\" or \"block\"");
    }
  }

  void priority() {
    const bool corp = section_ == Section::corp;
    rule_.priority = corp ? -10 : section_ == Section::fallback ? kDefaultPriority : 10;
    const rapidjson::Value *given = table_.find("priority");
    if (given == nullptr) return;
    if (given->IsString() && text_of(*given) == "default") {
      rule_.priority = kDefaultPriority;
      return;
    }
    const auto number = table_.integer("priority");
    if (!number) {
      failed_ = true;
      return;
    }
    const bool fits = section_ == Section::fallback ? *number == kDefaultPriority
                      : corp                        ? *number >= -1'000'000 && *number <= -10
                                                    : *number >= 10 && *number <= 1000;
    if (!fits) {
      return fault("priority", std::to_string(*number) + " is outside the range of " +
                                   (section_ == Section::fallback ? "[default] (only 1001)"
                                    : corp                        ? "[corp.rules] (-1000000 to -10)"
                                           : "[profiles.rules] (10 to 1000)"));
    }
    rule_.priority = static_cast<int>(*number);
  }

  const Section section_;
};

void read_all(const Table &rules, Section section, Drafts *out) {
  if (!rules.is_table()) return;
  for (const auto &each : rules.value().GetObject()) {
    const Table table = rules.table(text_of(each.name));
    if (!table.is_table()) continue;
    if (!good_id(text_of(each.name))) {
      table.fault({}, "a rule id must have 1 to 64 characters from a-z, 0-9, '_' and '-'");
      continue;
    }
    put_rule(table, MatchRuleReader(table, section).read(), out);
  }
}

void read_nested(const Layer &layer, std::string_view name, Section section, Drafts *out,
                 Faults *faults) {
  static constexpr std::string_view known[] = {"rules"};
  const rapidjson::Value *found = member(*layer.sections, name);
  if (found == nullptr) return;
  const Table table(layer, std::string(name), *found, *faults);
  if (!table.is_table()) return;
  table.only(known);
  if (table.find("rules") != nullptr) read_all(table.table("rules"), section, out);
}

}  // namespace

void read_match_rules(const Layer &layer, Drafts *out, Faults *faults) {
  if (const rapidjson::Value *corp = member(*layer.sections, "corp"); corp != nullptr) {
    if (layer.is_corp()) {
      read_nested(layer, "corp", Section::corp, out, faults);
    } else {
      faults->add(layer, "corp",
                  "these rules are allowed only in the corporation's profile; use "
                  "[profiles.rules.ID] or [security.rules.mcp.NAME]");
    }
  }
  // Rules in these sections have user priorities. They are rejected in the corporation's profile,
  // because they would not take precedence over user rules there.
  for (const std::string_view users : {"profiles", "default"}) {
    if (!layer.is_corp() || member(*layer.sections, users) == nullptr) continue;
    faults->add(layer, users,
                "rules in this section have lower precedence than user rules; use "
                "[corp.rules.ID] or [security.rules.mcp.NAME] in the corporation's profile");
  }
  if (layer.is_corp()) return;
  read_nested(layer, "profiles", Section::profiles, out, faults);
  if (const rapidjson::Value *fallback = member(*layer.sections, "default"))
    read_all(Table(layer, "default", *fallback, *faults), Section::fallback, out);
}

}  // namespace bulkhead::rules
