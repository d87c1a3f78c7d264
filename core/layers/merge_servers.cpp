#include "layers/merge_servers.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "layers/edit_servers.hpp"
#include "layers/edit_text.hpp"
#include "profile/parse.hpp"
#include "profile/server.hpp"
#include "profile/toml_text.hpp"

namespace bulkhead {
namespace profiles {
namespace {

using State = MergedServer::State;

// The keys that define a server in every client. All other keys are settings of the profile, unless
// the client's file has them too.
constexpr std::string_view kClientKeys[] = {"command", "args",    "env",        "cwd",
                                            "url",     "headers", "bearerToken"};

bool is_client_key(std::string_view key) noexcept {
  return std::find(std::begin(kClientKeys), std::end(kClientKeys), key) != std::end(kClientKeys);
}

// Returns the servers of a layer. The layer's text must already have been parsed successfully.
Node servers_in(const ProfileLayer &layer) {
  const std::vector<ProfileLayer> layers{layer};
  Diagnostics diagnostics(layers);
  Node root;
  if (!parse_layer(layers.front(), 0, {}, &root, diagnostics)) return {};
  const Member *section = servers_section(root);
  return section == nullptr ? Node() : section->value;
}

std::map<std::string_view, const Node *> keys_of_server(const Node &server) {
  std::map<std::string_view, const Node *> out;
  for (const Member &member : server.members) {
    if (const std::string_view key = server_key(member.name); !key.empty())
      out.emplace(key, &member.value);
  }
  return out;
}

bool same_value(const Node *a, const Node *b) {
  if (a == nullptr || b == nullptr) return a == b;
  std::string one, other;
  append_json(one, *a);
  append_json(other, *b);
  return one == other;
}

// Returns the server's type ("stdio", "http" or "sse"). If `type` is omitted, the other keys
// determine it.
std::string type_of(const Node &server, const std::map<std::string_view, const Node *> &keys) {
  const auto type = keys.find("type");
  if (type == keys.end()) return listed_type(server);
  const std::string_view known = canonical_type(type->second->text);
  return known.empty() ? type->second->text : std::string(known);
}

// Adds the key if the values differ. For env and headers, adds each differing member instead.
void add_differences(std::string_view key, const Node *here, const Node *there,
                     std::vector<std::string> *out) {
  static const Node none(Kind::table, {});
  if (key != "env" && key != "headers") {
    if (!same_value(here, there)) out->emplace_back(key);
    return;
  }
  const Node &a = here == nullptr ? none : *here, &b = there == nullptr ? none : *there;
  const auto add = [&](const Member &member) {
    std::string name = std::string(key) + '.' + member.name;
    if (same_value(a.find(member.name), b.find(member.name))) return;
    if (std::find(out->begin(), out->end(), name) == out->end()) out->push_back(std::move(name));
  };
  std::for_each(a.members.begin(), a.members.end(), add);
  std::for_each(b.members.begin(), b.members.end(), add);
}

// `here` is the definition in the profile, `there` the imported one.
std::vector<std::string> differences_of(const Node &here, const Node &there) {
  const auto a = keys_of_server(here), b = keys_of_server(there);
  std::vector<std::string> out;
  for (const std::string_view key : server_keys()) {
    const auto in_a = a.find(key), in_b = b.find(key);
    const Node *mine = in_a == a.end() ? nullptr : in_a->second;
    const Node *theirs = in_b == b.end() ? nullptr : in_b->second;
    if (key == "type") {
      if (type_of(here, a) != type_of(there, b)) out.emplace_back(key);
    } else if (key != "disabled" && key != "enabled" && (theirs != nullptr || is_client_key(key))) {
      add_differences(key, mine, theirs, &out);
    }
  }
  return out;
}

// Keys with the same meaning have the same result.
std::string_view setting_of(std::string_view key) noexcept {
  return key == "enabled"                ? "disabled"
         : key == "bearer_token_env_var" ? "bearerToken"
         : key == "tool_timeout_sec"     ? "timeout"
         : key == "startup_timeout_sec"  ? "connect_timeout"
                                         : key;
}

// Returns the settings of the profile that the imported definition does not have, such as the
// sandbox, as lines of TOML. Omits settings that the imported definition cannot have, such as
// sandbox_paths for a server with a URL.
std::string settings_to_keep(const Node &here, const Node &there) {
  std::set<std::string_view> imported;
  for (const Member &member : there.members) imported.insert(setting_of(server_key(member.name)));
  std::string out;
  for (const Member &member : here.members) {
    const std::string_view key = server_key(member.name), setting = setting_of(key);
    if (key.empty() || key == "type" || is_client_key(setting) || imported.contains(setting))
      continue;
    if (!server_key_fits(key, there)) continue;
    const std::string value = toml_value(member.value);
    if (!value.empty()) out += toml_key(member.name) + " = " + value + '\n';
  }
  return out;
}

// Inserts lines after the first table header of a server's TOML text.
std::string with_settings(const std::string &toml, const std::string &lines) {
  const std::size_t header = toml.starts_with('[') ? 0 : toml.find("\n[") + 1;
  std::string out = toml;
  return out.insert(toml.find('\n', header) + 1, lines);
}

class Merger {
 public:
  Merger(ProfileLayer file, bool replace)
      : file_(std::move(file)), before_(servers_in(file_)), replace_(replace) {}

  Result<void> add(const ImportedServer &server) {
    MergedServer merged{&server, server.name, State::added, {}, false};
    const Node *here = before_.find(server.name);
    const Node definition = servers_in({"import", "import.toml", server.toml});
    const Node *there = definition.find(server.name);
    if (!server.refused.empty() || there == nullptr) {
      merged.state = State::refused;
    } else if (const Node *base = before_.find(server.base);
               base != nullptr && is_same_under_base_name(server, *base)) {
      // the same definition exists under the name without the suffix
      merged.state = State::kept;
      merged.name = server.base;
      here = base;
    } else if (here != nullptr) {
      merged.differences = differences_of(*here, *there);
      merged.state = merged.differences.empty() ? State::kept
                     : replace_                 ? State::replaced
                                                : State::differs;
    }
    const bool stays = merged.state == State::kept || merged.state == State::differs;
    if (const Node *used = stays ? here : there) merged.disabled = is_disabled(*used);
    if (auto done = write(merged); !done) return done;
    out_.servers.push_back(std::move(merged));
    return {};
  }

  ServerMerge take() {
    out_.text = std::move(file_.text);
    return std::move(out_);
  }

 private:
  // The variables of credentials contain the server's name, so the definition that would have the
  // name without the suffix is compared.
  static bool is_same_under_base_name(const ImportedServer &server, const Node &base) {
    const Node tables = servers_in({"import", "import.toml", server.base_toml});
    const Node *definition = tables.find(server.base);
    return definition != nullptr && differences_of(base, *definition).empty();
  }

  Result<void> write(const MergedServer &merged) {
    std::string tables = merged.from->toml;
    if (merged.state == State::replaced) {
      const Node definition = servers_in({"import", "import.toml", tables});
      tables = with_settings(
          tables, settings_to_keep(*before_.find(merged.name), *definition.find(merged.name)));
      auto text = file_without_server(file_, merged.name);
      if (!text) return std::unexpected(text.error());
      file_.text = *std::move(text);
    } else if (merged.state != State::added) {
      return {};
    }
    auto text = file_with_tables(file_, merged.name, tables);
    if (!text) return std::unexpected(text.error());
    file_.text = *std::move(text);
    return {};
  }

  ProfileLayer file_;
  const Node before_;
  const bool replace_;
  ServerMerge out_;
};

}  // namespace
}  // namespace profiles

std::string_view to_string(MergedServer::State state) noexcept {
  static constexpr std::string_view kWords[] = {"added", "replaced", "kept", "differs", "refused"};
  return kWords[static_cast<std::size_t>(state)];
}

Result<ServerMerge> merge_servers(const ProfileLayer &file,
                                  const std::vector<ImportedServer> &imported, bool replace) {
  if (auto readable = servers_of_file(file); !readable) return std::unexpected(readable.error());
  profiles::Merger merger(file, replace);
  for (const ImportedServer &server : imported) {
    if (auto done = merger.add(server); !done) return std::unexpected(done.error());
  }
  return merger.take();
}

}  // namespace bulkhead
