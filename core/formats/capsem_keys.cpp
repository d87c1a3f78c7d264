// [mcpServers.NAME.capsem]: keys of another program's profiles, as other spellings of ours.
#include <algorithm>
#include <utility>

#include "formats/capsem_profile.hpp"
#include "profile/server.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kKeys[] = {"allowed_tools", "credential_refs", "editable", "enabled",
                                      "rules"};

Node &table_at(Node &table, std::string_view name, const Place &place) {
  for (Member &member : table.members)
    if (member.name == name) return member.value;
  table.members.push_back({std::string(name), place, Node(Kind::table, place)});
  return table.members.back().value;
}

class Taker {
 public:
  Taker(Node &layer, bool v2, bool rules, Diagnostics &diagnostics)
      : layer_(layer), v2_(v2), rules_(rules), diagnostics_(diagnostics) {}

  void take(Member &server) {
    if (server.value.kind != Kind::table) return;
    const auto at = std::find_if(server.value.members.begin(), server.value.members.end(),
                                 [](const Member &member) { return member.name == "capsem"; });
    if (at == server.value.members.end()) return;
    const Member capsem = std::move(*at);
    server.value.members.erase(at);
    path_ = join(join("mcpServers", server.name), "capsem");
    if (!diagnostics_.is_table(capsem.value, path_)) return;
    for (const Member &member : capsem.value.members) take_key(server, member);
  }

 private:
  void take_key(Member &server, const Member &member) {
    const std::string at = join(path_, member.name);
    if (member.name == "allowed_tools") {
      const auto list = diagnostics_.strings(member.value, at);
      if (list && !list->empty()) allow(server, member);  // an empty one means nothing
    } else if (member.name == "enabled") {
      if (diagnostics_.boolean(member.value, at)) put(server, "enabled", member);
    } else if (member.name == "editable") {
      diagnostics_.boolean(member.value, at);  // no layer changes another's servers anyway
    } else if (member.name == "credential_refs") {
      if (!member.value.items.empty() || !member.value.members.empty())
        diagnostics_.note(member.place, at + " has no meaning here: give the server its "
                                             "credentials in env or headers, as ${env:NAME}");
    } else if (member.name == "rules") {
      if (diagnostics_.is_table(member.value, at)) take_rules(server, member);
    } else {
      diagnostics_.unknown_key(member, path_, kKeys);
    }
  }

  void put(Member &server, std::string_view key, const Member &member) {
    for (const Member &other : server.value.members) {
      const std::string_view known = server_key(other.name);
      if (known != key && !(key == "enabled" && known == "disabled")) continue;
      diagnostics_.error(member.place, join(path_, member.name),
                         "means the same as " + in_quotes(other.name) + " in line " +
                             std::to_string(other.place.line) + "; give one of them");
      return;
    }
    server.value.members.push_back({std::string(key), member.place, member.value});
  }

  void allow(Member &server, const Member &list) {
    put(server, "allowTools", list);
    if (!v2_ || !rules_) return;
    Node &security = table_at(layer_, "security", list.place);
    Node &servers = table_at(security, "servers", list.place);
    Node &entry = table_at(servers, server.name, list.place);
    entry.members.push_back({"allowed_tools", list.place, list.value});
  }

  // Rules of one server: their conditions get its name.
  void take_rules(const Member &server, const Member &rules) {
    if (rules.value.members.empty()) return;
    if (!rules_) {
      diagnostics_.note(rules.place,
                        join(path_, "rules") + " is left out: this file gives servers only");
      return;
    }
    Node &security = table_at(layer_, "security", rules.place);
    if (security.kind != Kind::table) return;  // said later
    Node &all = table_at(security, "rules", rules.place);
    if (all.kind != Kind::table) return;
    Node &mcp = table_at(all, "mcp", rules.place);
    if (mcp.kind != Kind::table) return;
    for (const Member &rule : rules.value.members) {
      Member copy = rule;
      copy.name = server.name + "." + rule.name;
      for (Member &key : copy.value.members) {
        if (key.name != "if" || key.value.kind != Kind::string) continue;
        std::string condition = "mcp.request.server_name == ";
        append_json_string(condition, server.name);
        key.value.text = condition + " && (" + key.value.text + ")";
      }
      mcp.members.push_back(std::move(copy));
    }
  }

  Node &layer_;
  const bool v2_, rules_;
  Diagnostics &diagnostics_;
  std::string path_;
};

// There, what nobody has said anything about is asked about.
void ask_by_default(Node &layer) {
  Node &security = table_at(layer, "security", layer.place);
  if (security.kind != Kind::table) return;
  Node &capabilities = table_at(security, "capabilities", layer.place);
  if (capabilities.kind != Kind::table || capabilities.find("mcp_tools") != nullptr) return;
  Member ask{"mcp_tools", layer.place, Node(Kind::string, layer.place)};
  ask.value.text = "ask";
  capabilities.members.push_back(std::move(ask));
}

}  // namespace

void take_capsem_keys(Node &layer, bool v2, bool rules, Diagnostics &diagnostics) {
  Taker taker(layer, v2, rules, diagnostics);
  for (std::size_t i = 0; i < layer.members.size(); ++i) {
    if (layer.members[i].name != "mcpServers" || layer.members[i].value.kind != Kind::table)
      continue;
    // The layer's own members may grow meanwhile.
    Node servers = std::move(layer.members[i].value);
    for (Member &server : servers.members) taker.take(server);
    layer.members[i].value = std::move(servers);
  }
  if (v2) ask_by_default(layer);
}

}  // namespace bulkhead::profiles
