#include "corporation/corp_layer.hpp"

#include <algorithm>
#include <utility>

#include "profile/sections.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kKeys[] = {"operation", "path", "value", "reason"};
constexpr std::size_t kReasonBytes = 500;

bool is_rule_section(std::string_view name) {
  const auto names = rule_sections();
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Returns the other paths that a hold on `path` must cover as well: the other path of the default
// verdict or, for all of security.rules.mcp, the other three sections with rules.
std::vector<CorpPath> other_spellings(const CorpPath &path) {
  static const CorpPath kShort{"security", "default"};
  static const CorpPath kLong{"security", "capabilities", "mcp_tools"};
  if (path == kShort) return {kLong};
  if (path == kLong || path == CorpPath{"security", "capabilities"}) return {kShort};
  if (covers(path, {"security", "rules", "mcp", "*"}))
    return {{"security", "servers"}, {"profiles"}, {"default"}};
  return {};
}

// Returns true for a section that controls how layers are read. Such a section takes effect before
// directives are applied.
bool is_switch(std::string_view section) {
  return section == "editable" || section == "detect_servers";
}

// Returns true if the path denotes all servers. (A path such as "mcpServers.*.env" does not: it
// denotes one key of every server.)
bool is_all_servers(const CorpPath &path) {
  return path.front() == "mcpServers" &&
         (path.size() == 1 || (path.size() == 2 && path.back() == "*"));
}

// Returns true if `known` contains no tools plugin with the member's name, or if the member
// specifies a different `plugin` for it.
bool other_tools(const Member &member, const Node *known) {
  const Node *old = known == nullptr ? nullptr : known->find(member.name);
  if (old == nullptr) return true;
  const Node *plugin = member.value.find("plugin"), *was = old->find("plugin");
  return plugin != nullptr && (was == nullptr || was->text != plugin->text);
}

}  // namespace

constexpr Word CorpLayer::kOperations[] = {{"add", static_cast<int>(Operation::add)},
                                           {"remove", static_cast<int>(Operation::remove)},
                                           {"replace", static_cast<int>(Operation::replace)},
                                           {"lock", static_cast<int>(Operation::lock)},
                                           {"forbid", static_cast<int>(Operation::forbid)}};

std::string_view CorpLayer::name_of(Operation operation) {
  return word_of(kOperations, static_cast<int>(operation));
}

std::string CorpLayer::where(const Place &place) const {
  const Origin from = diagnostics_.origin(place);
  return (from.file.empty() ? from.layer : from.file) + ":" + std::to_string(place.line);
}

// ---- reading -----------------------------------------------------------------------------------

void CorpLayer::read_directives(Node &layer, std::uint16_t index) {
  index_ = index;
  for (const Member &member : layer.members) {
    if (member.name != "directives") continue;
    if (member.value.kind != Kind::array) {
      diagnostics_.error(member.place, "directives", "expected an array of tables");
    } else if (member.value.items.size() > kCorpDirectives) {
      diagnostics_.error(member.place, "directives",
                         "more than " + std::to_string(kCorpDirectives) + " directives");
    } else {
      for (std::size_t i = 0; i < member.value.items.size(); ++i)
        read(member.value.items[i], "directives[" + std::to_string(i) + "]");
    }
  }
  std::erase_if(layer.members, [](const Member &member) { return member.name == "directives"; });
  holds_.insert(holds_.end(), section_locks_.begin(), section_locks_.end());
  for (std::size_t i = 0; i < directives_.size(); ++i) reject_own_removals(i, layer);
  hold_servers(layer);
  hold_policies(layer);
  hold_trust(layer);
}

// Rejects a directive that would remove values defined in the same file, because that must be a
// mistake.
void CorpLayer::reject_own_removals(std::size_t number, Node &layer) {
  const Directive &directive = directives_[number];
  if (directive.operation != Operation::forbid && directive.operation != Operation::remove) return;
  const auto wrong = [&](const CorpPath &what, const Place &place) {
    diagnostics_.error(directive.place, to_string(directive.path),
                       "this would remove " + to_string(what) + ", which this file defines (" +
                           where(place) +
                           "); use \"lock\" to keep it and prevent changes in the layers above");
  };
  const std::vector<Touch> there = find_members(layer, directive.path);
  if (!there.empty()) return wrong(there[0].path, there[0].member().place);
  for (std::size_t i = 0; i < number; ++i) {
    const Directive &other = directives_[i];
    if (other.operation == Operation::add && covers(directive.path, other.path))
      return wrong(other.path, other.place);
  }
}

void CorpLayer::read(const Node &node, const std::string &at) {
  if (!diagnostics_.is_table(node, at)) return;
  const std::size_t errors = diagnostics_.count();
  Directive directive;
  directive.place = node.place;
  const Node *value = node.find("value");
  for (const Member &member : node.members)
    if (std::find(std::begin(kKeys), std::end(kKeys), member.name) == std::end(kKeys))
      diagnostics_.unknown_key(member, at, kKeys);
  const Node *operation = node.find("operation");
  const Node *path = node.find("path");
  const Node *reason = node.find("reason");
  if (operation == nullptr || path == nullptr)
    return diagnostics_.error(node.place, at, "\"operation\" and \"path\" are required");
  if (const auto word = diagnostics_.one_of(*operation, join(at, "operation"), kOperations))
    directive.operation = static_cast<Operation>(*word);
  if (const auto text = diagnostics_.string(*path, join(at, "path"))) {
    std::string why;
    if (auto parsed = parse_corp_path(*text, &why)) {
      directive.path = *std::move(parsed);
      const std::string &first = directive.path.front();
      if (!known_section(first))
        diagnostics_.error(path->place, join(at, "path"),
                           "unknown profile section " + in_quotes(first));
    } else {
      diagnostics_.error(path->place, join(at, "path"), why);
    }
  }
  if (reason != nullptr)
    directive.reason =
        printable(diagnostics_.string(*reason, join(at, "reason")).value_or(""), kReasonBytes);
  const bool gives =
      directive.operation == Operation::add || directive.operation == Operation::replace;
  if (gives && value == nullptr)
    diagnostics_.error(node.place, at, "this operation requires \"value\"");
  if (!gives && value != nullptr)
    diagnostics_.error(value->place, join(at, "value"), "this operation does not accept \"value\"");
  const auto any = std::find(directive.path.begin(), directive.path.end(), "*");
  if (directive.operation == Operation::add && any != directive.path.end())
    diagnostics_.error(path->place, join(at, "path"), "\"add\" requires a name instead of \"*\"");
  if (directive.operation != Operation::lock && !directive.path.empty() &&
      is_switch(directive.path.front()))
    diagnostics_.error(path->place, join(at, "path"),
                       in_quotes(directive.path.front()) +
                           " controls how layers are read, which happens before directives are "
                           "applied: set it as a key in this file, and \"lock\" it");
  // count() stops increasing at kProfileErrors, so comparing it with `errors` may miss an invalid
  // path or a misused "value". `whole` catches both.
  const bool whole = !directive.path.empty() && gives == (value != nullptr);
  if (!whole || diagnostics_.count() > errors || conflicts_with_earlier(directive, at)) return;
  if (value != nullptr) directive.value = *value;
  if (!gives && directive.operation != Operation::remove) hold(directive);
  directives_.push_back(std::move(directive));
}

bool CorpLayer::conflicts_with_earlier(const Directive &directive, const std::string &at) {
  const bool holding =
      directive.operation == Operation::lock || directive.operation == Operation::forbid;
  for (const Hold &held : holds_) {
    // A lock or forbid may repeat a hold on an equivalent path.
    if (held.implied && holding) continue;
    // A lock conflicts only with an earlier hold on the same path or on one of its parents.
    const bool late = directive.operation == Operation::lock
                          ? covers(held.path, directive.path)
                          : paths_meet(held.path, directive.path);
    if (!late) continue;
    diagnostics_.error(directive.place, at,
                       std::string(name_of(directive.operation)) + " " + to_string(directive.path) +
                           " conflicts with an earlier directive: " + held.reason,
                       held.forbids ? kForbidden : kLocked);
    return true;
  }
  return false;
}

void CorpLayer::hold(const Directive &directive) {
  Hold held;
  held.path = directive.path;
  held.forbids = directive.operation == Operation::forbid;
  held.place = directive.place;
  held.reason = std::string("the corporation's profile ") + (held.forbids ? "forbids " : "locks ") +
                to_string(directive.path) + " (" + where(directive.place) + ")";
  if (!directive.reason.empty()) held.reason += ": " + directive.reason;
  holds_.push_back(held);
  held.implied = true;
  for (CorpPath &other : other_spellings(directive.path)) {
    held.path = std::move(other);
    holds_.push_back(held);
  }
}

bool CorpLayer::holds(const CorpPath &path) const {
  return std::any_of(holds_.begin(), holds_.end(),
                     [&](const Hold &held) { return covers(held.path, path); });
}

void CorpLayer::lock_section(const LockedSection &fixed) {
  for (const CorpPath &path : fixed.paths)
    section_locks_.push_back({path, false, false, false,
                              "editable." + fixed.name +
                                  " is false in the corporation's profile (" + where(fixed.place) +
                                  ")",
                              fixed.place});
}

// Prevents other layers from replacing the corporation's servers and tools plugins.
void CorpLayer::hold_servers(const Node &layer) {
  const auto hold_name = [&](const std::string &name, const Place &place) {
    holds_.push_back({{"mcpServers", name},
                      false,
                      true,
                      false,
                      "the corporation's profile has a server or tools plugin with that name (" +
                          where(place) + ")",
                      place});
  };
  for (const std::string_view section : {"mcpServers", "tools"}) {
    const Node *table = layer.find(section);
    if (table == nullptr || table->kind != Kind::table) continue;
    for (const Member &entry : table->members) hold_name(entry.name, entry.place);
  }
  for (const Directive &directive : directives_) {
    const CorpPath &path = directive.path;
    const bool server = path.front() == "mcpServers" || path.front() == "tools";
    if (directive.operation == Operation::add && server && path.size() == 2)
      hold_name(path[1], directive.place);
  }
}

// Places a hold on the policies and services if the corporation's profile has rules, policies or
// directives for them. Rules depend on the policy that evaluates them, and a policy with an
// external decision point depends on the service that connects to it.
void CorpLayer::hold_policies(const Node &layer) {
  const Place *place = nullptr;
  for (const Member &member : layer.members)
    if (member.name == "policies" || is_rule_section(member.name)) place = &member.place;
  for (const Directive &directive : directives_)
    if (is_rule_section(directive.path.front()) || directive.path.front() == "policies")
      place = &directive.place;
  if (place == nullptr) return;
  const std::string begin =
      "the corporation's profile has rules, policies or directives for them (" + where(*place) +
      "), so ";
  const auto hold_section = [&](std::string_view section, std::string_view why) {
    holds_.push_back(
        {{std::string(section)}, false, false, false, begin + std::string(why), *place});
    holds_.back().keeps_values = true;
  };
  hold_section("policies", "only that profile can define policies");
  hold_section("services", "only that profile can define the services that policies use");
}

// Prevents other layers from weakening the corporation's requirements for plugins. The keys are
// also held if the corporation only requires signatures: a user's own key would make them
// meaningless. Revocations need no hold, because keep_revocations() joins those of all layers.
void CorpLayer::hold_trust(const Node &layer) {
  for (const Member &section : layer.members) {
    if (section.name != "plugin_trust" || section.value.kind != Kind::table) continue;
    const Node *required = section.value.find("require_signatures");
    const Node *keys = section.value.find("trusted_keys");
    const auto hold_key = [&](const char *key) {
      holds_.push_back({{"plugin_trust", key},
                        false,
                        true,
                        false,
                        "the corporation's profile defines it (" + where(section.place) + ")",
                        section.place});
    };
    if (required != nullptr) hold_key("require_signatures");
    if (required != nullptr || keys != nullptr) hold_key("trusted_keys");
  }
}

// ---- higher layers ------------------------------------------------------------------------------

void CorpLayer::screen(Node &layer, const Node &below, bool tolerant) {
  for (const Hold &held : holds_) {
    if (held.keeps_values) keep_values(held, layer, below);
    std::vector<Touch> touches = find_touches(layer, held.path, below);
    reject(held, touches, tolerant);
    reject_names(held, layer, below, tolerant);
  }
}

void CorpLayer::reject(const Hold &held, std::vector<Touch> &touches, bool tolerant) {
  for (const Touch &touch : touches) {
    const Place &place = touch.member().place;
    if (held.tolerated || tolerant)
      diagnostics_.note(place, to_string(touch.path) + " is skipped: " + held.reason);
    else
      diagnostics_.error(place, to_string(touch.path), held.reason,
                         held.forbids ? kForbidden : kLocked);
  }
  if (held.tolerated || tolerant) erase_all(touches);
}

// If a higher layer changes an existing entry of a held section, the change is dropped with a note.
// If it adds an entry, reject() handles it. If it changes an entry that a directive locks or
// forbids, reject() handles all entries of the section.
void CorpLayer::keep_values(const Hold &held, Node &layer, const Node &below) {
  const std::string &name = held.path.front();
  const Node *known = below.find(name);
  for (Member &section : layer.members) {
    if (section.name != name || section.value.kind != Kind::table || known == nullptr) continue;
    std::vector<Touch> touches;
    for (std::size_t i = 0; i < section.value.members.size(); ++i) {
      const std::string &entry = section.value.members[i].name;
      if (known->find(entry) == nullptr) continue;
      if (locked_by_directive({name, entry})) return;
      touches.push_back({&section.value, i, {name, entry}});
    }
    for (const Touch &touch : touches) {
      diagnostics_.note(touch.member().place,
                        to_string(touch.path) + " is skipped: " + held.reason);
    }
    erase_all(touches);
  }
  std::erase_if(layer.members, [&](const Member &section) {
    return section.name == name && section.value.kind == Kind::table &&
           section.value.members.empty();
  });
}

bool CorpLayer::locked_by_directive(const CorpPath &path) const {
  return std::any_of(holds_.begin(), holds_.end(), [&](const Hold &held) {
    return !held.keeps_values && paths_meet(held.path, path);
  });
}

// A tools plugin is a server with the instance's name. A hold on a server therefore also applies to
// a tools plugin with the same name, and vice versa. If all servers are held, tools plugins cannot
// be added.
void CorpLayer::reject_names(const Hold &held, Node &layer, const Node &below, bool tolerant) {
  const bool tools = held.path.front() == "tools";
  const bool all = is_all_servers(held.path);
  if (!tools && !all && (held.path.front() != "mcpServers" || held.path.size() == 1)) return;
  const Node *known = below.find("tools");
  for (Member &section : layer.members) {
    if (section.name != (tools ? "mcpServers" : "tools") || section.value.kind != Kind::table)
      continue;
    std::vector<Touch> touches;
    for (std::size_t i = 0; i < section.value.members.size(); ++i) {
      const std::string &name = section.value.members[i].name;
      const bool named = held.path.size() > 1 && held.path[1] == name;
      const bool any = tools && (held.path.size() == 1 || held.path[1] == "*") &&
                       known != nullptr && known->find(name) != nullptr;
      const bool more = all && other_tools(section.value.members[i], known);
      if (named || any || more) touches.push_back({&section.value, i, {section.name, name}});
    }
    reject(held, touches, tolerant);
  }
}

// ---- the result --------------------------------------------------------------------------------

void CorpLayer::apply(Node &root, std::vector<RuleLayer> *rules) {
  for (Directive &directive : directives_) apply_one(directive, root, rules);
  std::erase_if(*rules, [](const RuleLayer &layer) { return layer.sections.members.empty(); });
}

void CorpLayer::apply_one(Directive &directive, Node &root, std::vector<RuleLayer> *rules) {
  switch (directive.operation) {
    case Operation::add:
      return add(directive, root, rules);
    case Operation::replace:
      return replace(directive, root, rules);
    case Operation::remove:
    case Operation::forbid:
      return remove(directive, root, rules);
    case Operation::lock:
      directive.trace = "locked";
  }
}

void CorpLayer::add(Directive &directive, Node &root, std::vector<RuleLayer> *rules) {
  const std::vector<Touch> there = find_members(root, directive.path);
  if (!there.empty() && there.front().member().place.layer <= index_) {
    return diagnostics_.error(
        directive.place, to_string(directive.path),
        "already exists (" + where(there.front().member().place) + "); use \"replace\"");
  }
  if (!there.empty()) {
    replace(directive, root, rules);
    return;
  }
  if (!set_value(directive, root)) return;
  if (is_rule_section(directive.path.front())) set_value(directive, own_rules(rules).sections);
  directive.trace = "added";
}

void CorpLayer::replace(Directive &directive, Node &root, std::vector<RuleLayer> *rules) {
  std::vector<Touch> there = find_members(root, directive.path);
  directive.trace =
      there.empty() ? "nothing to replace" : "replaced " + where(there[0].member().place);
  for (Touch &touch : there) {
    Member &member = touch.parent->members[touch.index];
    if (member.place.layer > index_)
      diagnostics_.note(member.place,
                        to_string(touch.path) + " is replaced by the corporation's profile (" +
                            where(directive.place) + ")" +
                            (directive.reason.empty() ? "" : ": " + directive.reason));
    member.place = directive.place;
    member.value = directive.value;
  }
  if (there.empty() || !is_rule_section(directive.path.front())) return;
  // The directive replaces rules: remove the old ones, and add the new ones to the corporation's
  // layer.
  for (RuleLayer &layer : *rules) {
    std::vector<Touch> old = find_members(layer.sections, directive.path);
    erase_all(old);
  }
  for (const Touch &touch : there) {
    Directive one = directive;
    one.path = touch.path;
    set_value(one, own_rules(rules).sections);
  }
}

void CorpLayer::remove(Directive &directive, Node &root, std::vector<RuleLayer> *rules) {
  std::vector<Touch> there = find_members(root, directive.path);
  directive.trace = there.empty() ? "" : "removed " + where(there[0].member().place);
  if (directive.operation == Operation::forbid)
    directive.trace += there.empty() ? "forbidden" : ", forbidden";
  else if (there.empty())
    directive.trace = "nothing to remove";
  for (const Touch &touch : there)
    if (touch.member().place.layer > index_)
      diagnostics_.note(touch.member().place,
                        to_string(touch.path) + " is removed by the corporation's profile (" +
                            where(directive.place) + ")" +
                            (directive.reason.empty() ? "" : ": " + directive.reason));
  erase_all(there);
  if (!is_rule_section(directive.path.front())) return;
  for (RuleLayer &layer : *rules) {
    std::vector<Touch> old = find_members(layer.sections, directive.path);
    erase_all(old);
  }
}

bool CorpLayer::set_value(const Directive &directive, Node &root) {
  Node *table = &root;
  for (std::size_t i = 0; i < directive.path.size(); ++i) {
    if (table->kind != Kind::table) {
      diagnostics_.error(directive.place, to_string(directive.path),
                         "its parent is not a table (" + where(table->place) + ")");
      return false;
    }
    const std::string &name = directive.path[i];
    const auto found = std::find_if(table->members.begin(), table->members.end(),
                                    [&](const Member &member) { return member.name == name; });
    if (found != table->members.end()) {
      table = &found->value;
      continue;
    }
    table->members.push_back({name, directive.place, Node(Kind::table, directive.place)});
    table = &table->members.back().value;
  }
  *table = directive.value;
  return true;
}

RuleLayer &CorpLayer::own_rules(std::vector<RuleLayer> *rules) const {
  const auto at = std::find_if(rules->begin(), rules->end(),
                               [&](const RuleLayer &layer) { return layer.layer >= index_; });
  if (at != rules->end() && at->layer == index_) return *at;
  Place place;
  place.layer = index_;
  return *rules->insert(at, {index_, Node(Kind::table, place)});
}

void CorpLayer::report(Profile *profile, std::vector<ProfileHold> *holds) const {
  for (std::size_t i = 0; i < directives_.size(); ++i) {
    const Directive &directive = directives_[i];
    std::string text(name_of(directive.operation));
    text += " " + to_string(directive.path) + ": " + directive.trace;
    if (!directive.reason.empty()) text += " (" + directive.reason + ")";
    profile->shown.push_back({"directives[" + std::to_string(i) + "]", std::move(text),
                              diagnostics_.origin(directive.place)});
  }
  for (const Hold &held : holds_) holds->push_back({held.path, held.forbids, held.reason});
}

}  // namespace bulkhead::profiles
