// Reads the [security] section: the default action, the rules ([security.rules.mcp.NAME]) and the
// servers' allow lists of tools ([security.servers.NAME]).
#include <algorithm>
#include <utility>

#include "json_text.hpp"
#include "read_budget.hpp"
#include "rule_reader.hpp"

namespace bulkhead::rules {
namespace {

constexpr std::string_view kSectionKeys[] = {
    "default", "legacy", "capabilities", "servers", "rules", "large_messages", "values_at_once"};
constexpr std::int64_t kMinValues = 1'024, kMaxValuesAtOnce = 1'048'576;
constexpr std::string_view kRuleKeys[] = {"on",
                                          "if",
                                          "decision",
                                          "priority",
                                          "reason",
                                          "enabled",
                                          "over",
                                          "rewrite_target",
                                          "rewrite_value",
                                          "strip_arguments",
                                          "strip_response"};
constexpr int kMinCorp = -1000, kMaxCorp = -1, kMinUser = 1, kMaxUser = 999;

std::optional<Action> fallback_named(std::string_view text) {
  if (text == "allow" || text == "audit") return Action::allow;
  if (text == "ask") return Action::ask;
  if (text == "block") return Action::block;
  return std::nullopt;
}

void set_fallback(const Table &table, std::string_view key, bool audit, Drafts *out) {
  const auto text = table.text(key);
  if (!text) return;
  const auto action = fallback_named(*text);
  if (!action || (*text == "audit" && !audit)) {
    return table.fault(key, std::string("must be \"allow\", ") + (audit ? "\"audit\", " : "") +
                                "\"ask\" or \"block\"");
  }
  const bool corp = table.layer().is_corp();
  // Other layers may repeat the corporation's value but must not change it.
  if (out->fallback_fixed && !corp) {
    if (*action == out->fallback) return;
    return table.fault(key, "the corporation's profile sets \"" +
                                std::string(to_string(out->fallback)) + "\" (" +
                                out->fallback_place + "), which cannot be changed");
  }
  out->fallback = *action;
  out->fallback_place = table.place(key);
  out->fallback_fixed = out->fallback_fixed || corp;
}

// Reads the settings for large messages. A message is large if a rule reads it and it is too large
// for the reactor thread.
void set_large(const Table &table, Drafts *out) {
  if (const auto number = table.integer("values_at_once")) {
    if (*number < kMinValues || *number > kMaxValuesAtOnce)
      table.fault("values_at_once", "must be a number from 1024 to 1048576");
    else
      out->values_at_once = static_cast<std::uint64_t>(*number);
  }
  const auto text = table.text("large_messages");
  if (!text) return;
  if (*text != "judge" && *text != "refuse")
    return table.fault("large_messages", "must be \"judge\" or \"refuse\"");
  const bool refuses = *text == "refuse", corp = table.layer().is_corp();
  if (out->refuses_large_fixed && !corp && refuses != out->refuses_large)
    return table.fault("large_messages",
                       "the corporation's profile sets a different value, which cannot be changed");
  out->refuses_large = refuses;
  out->refuses_large_fixed = out->refuses_large_fixed || corp;
}

// Reads one rule from [security.rules.mcp].
class SecurityReader : RuleReader {
 public:
  SecurityReader(const Table &table, const Drafts &drafts)
      : RuleReader(table), legacy_(drafts.legacy) {}

  // Returns nullopt if the rule is disabled or invalid.
  std::optional<Rule> read() {
    if (refused_header_key()) return std::nullopt;
    table_.only(kRuleKeys);
    event();
    decision();
    priority();
    condition();
    change();
    if (table_.find("over") != nullptr) budget();
    return finish();
  }

 private:
  bool refused_header_key() {
    for (const std::string_view key : {"strip_request_headers", "strip_response_headers"}) {
      if (table_.find(key) == nullptr) continue;
      fault(
          key,
          "an MCP message has no headers; use strip_arguments and strip_response to remove members "
          "of arguments and results");
      return true;
    }
    return false;
  }

  void event() {
    const auto text = table_.text("on");
    const auto event = text ? event_named(*text) : std::nullopt;
    if (event) {
      rule_.event = *event;
      return;
    }
    std::string known;
    for (std::size_t i = 0; i < kEvents; ++i) {
      known += (i == 0 ? "" : i + 1 == kEvents ? " or " : ", ");
      known.append("\"").append(to_string(static_cast<Event>(i))).append("\"");
    }
    fault("on", text ? "\"" + text->substr(0, 80) + "\" is not a supported event; use " + known
                     : "the key \"on\" is required: " + known);
  }

  void decision() {
    const auto text = table_.text("decision");
    const bool response = rule_.event == Event::response;
    const bool input = !response && rule_.event != Event::request;
    if (text == "allow") {
      rule_.action = Action::allow;
    } else if (text == "block") {
      rule_.action = Action::block;
    } else if (input && (text == "rewrite" || text == "ask")) {
      fault("decision", "a message with on = \"" + std::string(to_string(rule_.event)) +
                            "\" can only be allowed or blocked");
    } else if (text == "rewrite") {
      rule_.action = Action::rewrite;
    } else if (text == "ask" && response) {
      fault("decision", "approval is not supported for responses: use \"block\" or \"rewrite\"");
    } else if (text == "ask") {
      rule_.action = Action::ask;
    } else if (text == "warn" && legacy_) {
      rule_.action = Action::allow;
      rule_.warned = true;
    } else if (text == "warn") {
      fault("decision",
            "\"warn\" is not a decision: use \"allow\", \"ask\", \"block\" or \"rewrite\" (with "
            "legacy = true in [security], it allows the call with a warning)");
    } else {
      fault("decision", "must be \"allow\", \"ask\", \"block\" or \"rewrite\"");
    }
  }

  void priority() {
    const bool corp = table_.layer().is_corp();
    const auto number = table_.integer("priority");
    if (!number) {
      if (table_.find("priority") != nullptr) failed_ = true;
      rule_.priority = corp ? -100 : 100;
      return;
    }
    const int least = corp ? kMinCorp : kMinUser, most = corp ? kMaxCorp : kMaxUser;
    if (*number >= least && *number <= most) {
      rule_.priority = static_cast<int>(*number);
      return;
    }
    std::string text = std::to_string(*number) + " is outside the range of ";
    text += corp ? "the corporation's profile (-1000 to -1)" : "your rules (1 to 999)";
    if (*number == 0 || *number == 1000) {
      text += "; 0 and 1000 are reserved for generated rules";
    } else if (!corp && *number < 0) {
      text += "; priorities below 0 are reserved for the corporation";
    }
    fault("priority", text);
  }

  void condition() {
    const auto text = table_.text("if");
    if (!text) {
      if (table_.find("if") == nullptr)
        fault("if", "the key \"if\" is required: a condition, or \"true\"");
      failed_ = true;
    } else if (!compile_condition(table_, "if", *text, &rule_)) {
      failed_ = true;
    }
  }

  void change() {
    const bool target = table_.find("rewrite_target") != nullptr;
    const bool value = table_.find("rewrite_value") != nullptr;
    const bool request = rule_.event == Event::request;
    const std::string_view strip = request ? "strip_arguments" : "strip_response";
    const std::string_view other = request ? "strip_response" : "strip_arguments";
    if (table_.find(other) != nullptr) {
      return fault(
          other, std::string("this requires on = \"mcp.") + (request ? "response\"" : "request\""));
    }
    const int ways = (target || value ? 1 : 0) + (table_.find(strip) != nullptr ? 1 : 0);
    if (rule_.action != Action::rewrite) {
      if (ways != 0)
        fault("decision",
              "rewrite_target, rewrite_value and strip_* require decision = \"rewrite\"");
      return;
    }
    if (ways != 1 || target != value) {
      return fault("decision", "\"rewrite\" requires rewrite_target and rewrite_value, or " +
                                   std::string(strip));
    }
    if (table_.find(strip) != nullptr) {
      const auto paths = table_.texts(strip);
      if (!paths) {
        failed_ = true;
        return;
      }
      return take(Rewrite::stripping(*paths), strip);
    }
    const auto target_text = table_.text("rewrite_target");
    const auto value_text = table_.text("rewrite_value");
    if (!target_text || !value_text) {
      failed_ = true;
      return;
    }
    take(Rewrite::replacing(rule_.event, *target_text, *value_text), "rewrite_target");
  }

  void take(std::expected<Rewrite, std::string> made, std::string_view key) {
    if (!made) return fault(key, made.error());
    rule_.rewrite = std::move(*made);
  }

  void budget() {
    if (rule_.event != Event::request) return fault("over", "budgets apply only to requests");
    rule_.over = read_budget(table_.table("over"));
    failed_ = failed_ || !rule_.over;
  }

  const bool legacy_;
};

void read_rules(const Table &rules, Drafts *out) {
  if (!rules.is_table()) return;
  for (const auto &type : rules.value().GetObject()) {
    const std::string_view name = text_of(type.name);
    if (name != "mcp") {
      rules.fault(name, "only MCP is supported: rules are [security.rules.mcp.NAME]");
      continue;
    }
    const Table mcp = rules.table(name);
    if (!mcp.is_table()) continue;
    for (const auto &each : mcp.value().GetObject()) {
      const Table table = mcp.table(text_of(each.name));
      if (!table.is_table()) continue;
      if (text_of(each.name) == "default") {
        table.fault(
            {},
            "the name \"default\" is reserved for the generated rule; set default in [security] "
            "instead");
        continue;
      }
      put_rule(table, SecurityReader(table, *out).read(), out);
    }
  }
}

// Reads the allow list of a server. Calls to tools that are not listed are blocked unless a rule
// with a priority below 0 decides first. Calls to listed tools are evaluated against the other
// rules, and are allowed if no rule matches.
void read_server(const Table &table, std::string_view server, Drafts *out) {
  static constexpr std::string_view known[] = {"allowed_tools"};
  if (!table.is_table()) return;
  table.only(known);
  auto tools = table.texts("allowed_tools");
  if (!tools) return;
  if (tools->empty()) {
    return table.fault("allowed_tools",
                       "an empty list allows no tools: list tools, or remove the key");
  }
  std::sort(tools->begin(), tools->end());
  Rule deny;
  deny.id = join(table.path(), "allowed_tools");
  deny.layer = table.layer().name;
  deny.action = Action::block;
  deny.priority = 0;
  deny.reason = "the tool is not in the list of allowed tools (" + table.place() + ")";
  deny.by_list = true;
  deny.server = server;
  deny.tools = *tools;
  Rule allow;
  allow.id = deny.id + ".listed";
  allow.layer = deny.layer;
  allow.action = Action::allow;
  allow.priority = 1000;
  allow.by_list = allow.listed = true;
  allow.server = server;
  allow.tools = std::move(*tools);
  add_rule(table, std::move(deny), out);
  add_rule(table, std::move(allow), out);
}

}  // namespace

void read_security(const Table &section, Drafts *out) {
  if (!section.is_table()) return;
  section.only(kSectionKeys);
  if (const auto legacy = section.flag("legacy")) out->legacy = *legacy;
  if (section.find("capabilities") != nullptr) {
    static constexpr std::string_view known[] = {"mcp_tools"};
    const Table capabilities = section.table("capabilities");
    if (capabilities.is_table()) {
      capabilities.only(known);
      set_fallback(capabilities, "mcp_tools", true, out);
    }
  }
  set_fallback(section, "default", false, out);
  set_large(section, out);
  if (section.find("servers") != nullptr) {
    const Table servers = section.table("servers");
    if (servers.is_table()) {
      for (const auto &each : servers.value().GetObject())
        read_server(servers.table(text_of(each.name)), text_of(each.name), out);
    }
  }
  if (section.find("rules") != nullptr) read_rules(section.table("rules"), out);
}

}  // namespace bulkhead::rules
