// Translates the capsem profile keys in [mcpServers.NAME.capsem] to keys of this program's
// profiles.
#include <algorithm>
#include <utility>
#include <vector>

#include "formats/capsem_profile.hpp"
#include "profile/server.hpp"

namespace bulkhead::profiles {

namespace {

Node &table_at(Node &table, std::string_view name, const Place &place) {
  for (Member &member : table.members)
    if (member.name == name) return member.value;
  table.members.push_back({std::string(name), place, Node(Kind::table, place)});
  return table.members.back().value;
}

class CapsemKeys {
 public:
  CapsemKeys(Node &layer, bool v2, bool rules, Diagnostics &diagnostics)
      : layer_(layer), v2_(v2), rules_(rules), diagnostics_(diagnostics) {}

  // Replaces the "capsem" member of a server with the translated keys.
  void translate(Member &server) {
    if (server.value.kind != Kind::table) return;
    const auto at = std::find_if(server.value.members.begin(), server.value.members.end(),
                                 [](const Member &member) { return member.name == "capsem"; });
    if (at == server.value.members.end()) return;
    const Member capsem = std::move(*at);
    server.value.members.erase(at);
    path_ = join(join("mcpServers", server.name), "capsem");
    if (!diagnostics_.is_table(capsem.value, path_)) return;
    for (const Member &member : capsem.value.members) translate_key(server, member);
  }

 private:
  struct Key {
    std::string_view name;
    void (CapsemKeys::*translate)(Member &server, const Member &member, const std::string &at);
  };

  void translate_key(Member &server, const Member &member) {
    static constexpr Key kKeys[] = {
        {"allowed_tools", &CapsemKeys::translate_allowed_tools},
        {"credential_refs", &CapsemKeys::note_credentials},
        {"editable", &CapsemKeys::check_editable},
        {"enabled", &CapsemKeys::translate_enabled},
        {"rules", &CapsemKeys::translate_rules},
    };
    std::vector<std::string_view> names;
    for (const Key &key : kKeys) {
      if (key.name == member.name)
        return (this->*key.translate)(server, member, join(path_, member.name));
      names.push_back(key.name);
    }
    diagnostics_.unknown_key(member, path_, names);
  }

  // An empty list allows all tools.
  void translate_allowed_tools(Member &server, const Member &member, const std::string &at) {
    const auto list = diagnostics_.strings(member.value, at);
    if (list && !list->empty()) allow(server, member);
  }

  void translate_enabled(Member &server, const Member &member, const std::string &at) {
    if (diagnostics_.boolean(member.value, at)) add_key(server, "enabled", member);
  }

  // Checks only the type. The key has no effect, because a layer cannot change single keys of
  // another layer's server.
  void check_editable(Member &, const Member &member, const std::string &at) {
    diagnostics_.boolean(member.value, at);
  }

  void note_credentials(Member &, const Member &member, const std::string &at) {
    if (member.value.items.empty() && member.value.members.empty()) return;
    diagnostics_.note(member.place, at + " is not supported: pass credentials to the server "
                                         "in env or headers, as ${env:NAME}");
  }

  void add_key(Member &server, std::string_view key, const Member &member) {
    for (const Member &other : server.value.members) {
      const std::string_view known = server_key(other.name);
      if (known != key && !(key == "enabled" && known == "disabled")) continue;
      diagnostics_.error(member.place, join(path_, member.name),
                         "duplicates " + in_quotes(other.name) + " on line " +
                             std::to_string(other.place.line) + "; use one of them");
      return;
    }
    server.value.members.push_back({std::string(key), member.place, member.value});
  }

  void allow(Member &server, const Member &list) {
    add_key(server, "allowTools", list);
    if (!v2_ || !rules_) return;
    Node &security = table_at(layer_, "security", list.place);
    Node &servers = table_at(security, "servers", list.place);
    Node &entry = table_at(servers, server.name, list.place);
    entry.members.push_back({"allowed_tools", list.place, list.value});
  }

  // Translates the rules of one server by adding a condition on the server's name to each rule.
  void translate_rules(Member &server, const Member &rules, const std::string &at) {
    if (!diagnostics_.is_table(rules.value, at) || rules.value.members.empty()) return;
    if (!rules_) {
      diagnostics_.note(rules.place, at + " is skipped: this file can define only servers");
      return;
    }
    Node &security = table_at(layer_, "security", rules.place);
    if (security.kind != Kind::table) return;  // the error is reported when the section is read
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

// Sets the default verdict to "ask", which is capsem's default.
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

void translate_capsem_keys(Node &layer, bool v2, bool rules, Diagnostics &diagnostics) {
  CapsemKeys keys(layer, v2, rules, diagnostics);
  for (std::size_t i = 0; i < layer.members.size(); ++i) {
    if (layer.members[i].name != "mcpServers" || layer.members[i].value.kind != Kind::table)
      continue;
    // translate() adds members to the layer, which may move its other members. The servers are
    // therefore moved out first.
    Node servers = std::move(layer.members[i].value);
    for (Member &server : servers.members) keys.translate(server);
    layer.members[i].value = std::move(servers);
  }
  if (v2) ask_by_default(layer);
}

}  // namespace bulkhead::profiles
