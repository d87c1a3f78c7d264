#include "layers/canonical.hpp"

#include <algorithm>
#include <span>
#include <unordered_map>
#include <utility>

#include "profile/parse.hpp"
#include "profile/sections.hpp"

namespace bulkhead::profiles {

namespace {

// Settings files of MCP clients. In these files, the keys in kClientWords belong to the client and
// not to the gateway: Gemini CLI, for example, has "tools", "telemetry" and "security".
constexpr std::string_view kClientFiles[] = {"settings.json", ".claude.json",
                                             "claude_desktop_config.json"};
constexpr std::string_view kClientWords[] = {"tools",   "telemetry", "security", "schema",
                                             "default", "profiles",  "policy",   "corp",
                                             "id",      "revision"};

bool in(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_client_file(const std::string &file) {
  return in(kClientFiles, std::string_view(file).substr(file.rfind('/') + 1));
}

bool server_section(std::string_view name) {
  for (const std::string_view known : {"mcpServers", "mcp_servers", "servers", "mcp.servers"})
    if (name == known) return true;
  return false;
}

class Canonical {
 public:
  Canonical(Diagnostics &diagnostics, const ProfileLayer &layer)
      : diagnostics_(diagnostics),
        shared_(is_json(layer) && !layer.project && !layer.lenient && !layer.corp),
        client_(shared_ && is_client_file(layer.file)) {}

  Node make(Node &&root) {
    static constexpr Spelling kSpellings[] = {
        {"mcpServers", &Canonical::add_servers},
        {"mcp_servers", &Canonical::add_servers},
        {"servers", &Canonical::add_servers},
        {"mcp.servers", &Canonical::add_servers},
        {"mcp", &Canonical::unwrap},
        {"inputs", &Canonical::drop_inputs},
        {"policy", &Canonical::add_short_policy},
        {"policies", &Canonical::add_policies},
        {"$schema", &Canonical::drop},
    };
    Node out(Kind::table, root.place);
    for (Member &member : root.members) {
      const Spelling *row = std::find_if(std::begin(kSpellings), std::end(kSpellings),
                                         [&](const Spelling &s) { return s.name == member.name; });
      if (row == std::end(kSpellings))
        out.members.push_back(std::move(member));
      else
        (this->*row->read)(std::move(member), "");
    }
    if (has_servers_ && shared_) leave_out_foreign(out);
    if (has_servers_) out.members.push_back(std::move(servers_));
    if (has_policies_) out.members.push_back(std::move(policies_));
    return out;
  }

 private:
  // A top-level key that is translated to the canonical form. `above` is the path that precedes it.
  struct Spelling {
    std::string_view name;
    void (Canonical::*read)(Member &&member, const std::string &above);
  };

  void drop(Member &&, const std::string &) {}

  void add_servers(Member &&section, const std::string &above) {
    const std::string path = above + section.name;
    if (!diagnostics_.is_table(section.value, path)) return;
    if (!has_servers_) {
      servers_.name = "mcpServers";
      servers_.place = section.place;
      servers_.value = Node(Kind::table, section.value.place);
      has_servers_ = true;
    }
    for (Member &entry : section.value.members) {
      const auto [old, added] = lines_.emplace(entry.name, entry.place.line);
      if (added) {
        servers_.value.members.push_back(std::move(entry));
        continue;
      }
      diagnostics_.error(
          entry.place, join(path, entry.name),
          "a server with this name is already defined on line " + std::to_string(old->second));
    }
  }

  // Unwraps the VS Code settings format: "mcp": { "servers": {...}, "inputs": [...] }.
  void unwrap(Member &&wrapper, const std::string &) {
    static constexpr std::string_view kKnown[] = {"servers", "mcpServers", "inputs"};
    if (!diagnostics_.is_table(wrapper.value, "mcp")) return;
    for (Member &member : wrapper.value.members) {
      if (server_section(member.name))
        add_servers(std::move(member), "mcp.");
      else if (member.name == "inputs")
        drop_inputs(std::move(member), "mcp.");
      else if (shared_ && (client_ || nearest(member.name, kKnown).empty()))
        note_foreign(member, "mcp.");
      else
        diagnostics_.unknown_key(member, "mcp", kKnown);
    }
  }

  // Drops other programs' keys from a JSON file that contains servers. A key that resembles a
  // section name is reported as a typo, unless the file is known to belong to a client.
  void leave_out_foreign(Node &out) {
    std::erase_if(out.members, [this](const Member &member) {
      const bool ours = in(section_names(), member.name);
      const bool foreign_key = client_ ? !ours || in(kClientWords, member.name)
                                       : !ours && nearest(member.name, section_names()).empty();
      if (foreign_key) note_foreign(member, "");
      return foreign_key;
    });
    if (foreign_ == 0) return;
    diagnostics_.note(foreign_place_, "keys of another program are ignored: " + foreign_names_ +
                                          (foreign_ > 6 ? " and others" : ""));
  }

  void note_foreign(const Member &member, const std::string &path) {
    if (foreign_ == 0) foreign_place_ = member.place;
    if (++foreign_ <= 6) {
      foreign_names_ += (foreign_names_.empty() ? "" : ", ") + path + printable(member.name);
    }
  }

  // Drops an editor's prompts ("inputs"). References to them (${input:ID}) are resolved when the
  // server is read (expand()).
  void drop_inputs(Member &&inputs, const std::string &) {
    if (inputs.value.kind != Kind::array)
      diagnostics_.error(inputs.place, inputs.name, "expected an array");
  }

  void add_policies(Member &&section, const std::string &) {
    if (!diagnostics_.is_table(section.value, "policies")) return;
    open_policies(section.place);
    for (Member &entry : section.value.members) add_policy(std::move(entry));
  }

  void add_short_policy(Member &&policy, const std::string &) {
    if (!diagnostics_.is_table(policy.value, "policy")) return;
    open_policies(policy.place);
    add_policy(std::move(policy));
  }

  void open_policies(const Place &place) {
    if (has_policies_) return;
    policies_.name = "policies";
    policies_.place = place;
    policies_.value = Node(Kind::table, place);
    has_policies_ = true;
  }

  void add_policy(Member &&entry) {
    // Keys in [policies] are unique, so only [policies.policy] and the top-level [policy] can
    // collide.
    if (entry.name != "policy" || !has_default_policy_) {
      has_default_policy_ = has_default_policy_ || entry.name == "policy";
      policies_.value.members.push_back(std::move(entry));
      return;
    }
    diagnostics_.error(entry.place, join("policies", entry.name),
                       "[policy] is the same as [policies.policy]; use only one of them");
  }

  Diagnostics &diagnostics_;
  const bool shared_;  // a JSON file that other programs may use
  const bool client_;  // a known settings file of an MCP client
  std::size_t foreign_ = 0;
  Place foreign_place_{};
  std::string foreign_names_;
  Member servers_, policies_;
  bool has_servers_ = false, has_policies_ = false, has_default_policy_ = false;
  std::unordered_map<std::string, std::uint32_t> lines_;
};

// Merges tables by name. If two tables have the same name, the one in `over` replaces the one in
// `base` if `whole` returns true for them. Otherwise, their keys are merged.
template <class Whole>
void merge_instances(Node &base, Node &&over, Whole whole) {
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < base.members.size(); ++i) index.emplace(base.members[i].name, i);
  for (Member &member : over.members) {
    const auto found = index.find(member.name);
    if (found == index.end()) {
      base.members.push_back(std::move(member));
      continue;
    }
    Member &old = base.members[found->second];
    old.place = member.place;
    if (old.value.kind != Kind::table || member.value.kind != Kind::table ||
        whole(old.value, member.value))
      old.value = std::move(member.value);
    else
      merge_tables(old.value, std::move(member.value));
  }
}

// Returns true if the tables specify different plugins. Their configuration keys then differ, too.
bool other_plugin(const Node &old, const Node &added) {
  const Node *was = old.find("plugin");
  const Node *is = added.find("plugin");
  return is != nullptr && (was == nullptr || was->text != is->text);
}

bool plugin_group(std::string_view name) {
  const auto groups = plugin_groups();
  return std::find(groups.begin(), groups.end(), name) != groups.end();
}

}  // namespace

Node canonical_layer(Node &&root, const ProfileLayer &layer, Diagnostics &diagnostics) {
  return Canonical(diagnostics, layer).make(std::move(root));
}

void merge_layer(Node &base, Node &&over) {
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < base.members.size(); ++i) index.emplace(base.members[i].name, i);
  for (Member &section : over.members) {
    const auto found = index.find(section.name);
    if (found == index.end()) {
      base.members.push_back(std::move(section));
      continue;
    }
    Member *old = &base.members[found->second];
    old->place = section.place;
    const bool tables = old->value.kind == Kind::table && section.value.kind == Kind::table;
    if (!tables)
      old->value = std::move(section.value);
    else if (section.name == "mcpServers")
      merge_instances(old->value, std::move(section.value),
                      [](const Node &, const Node &) { return true; });
    else if (plugin_group(section.name))
      merge_instances(old->value, std::move(section.value), other_plugin);
    else
      merge_tables(old->value, std::move(section.value));
  }
}

}  // namespace bulkhead::profiles
