#include "layers/merge_servers.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "formats/definition_differences.hpp"
#include "layers/edit_servers.hpp"
#include "layers/edit_text.hpp"
#include "profile/parse.hpp"
#include "profile/server.hpp"
#include "profile/toml_text.hpp"

namespace bulkhead {
namespace profiles {
namespace {

using State = MergedServer::State;

// Returns the servers of a layer. The layer's text must already have been parsed successfully.
Node servers_in(const ProfileLayer &layer) {
  const std::vector<ProfileLayer> layers{layer};
  Diagnostics diagnostics(layers);
  Node root;
  if (!parse_layer(layers.front(), 0, {}, &root, diagnostics)) return {};
  const Member *section = servers_section(root);
  return section == nullptr ? Node() : section->value;
}

// Keys with the same meaning have the same result.
std::string_view setting_of(std::string_view key) noexcept {
  return key == "enabled"                ? "disabled"
         : key == "bearer_token_env_var" ? "bearerToken"
         : key == "tool_timeout_sec"     ? "timeout"
         : key == "startup_timeout_sec"  ? "connect_timeout"
                                         : key;
}

// Returns, as lines of TOML, the gateway's settings (such as the sandbox) of the server `here` that
// `there`, the imported definition, does not set. Omits keys that clients have as well, and
// settings that `there` cannot have, such as sandbox_paths for a server with a URL.
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
      merged.differences = definition_differences(*here, *there);
      merged.state = merged.differences.empty() ? State::kept
                     : replace_                 ? State::replaced
                                                : State::differs;
    }
    const std::string toml = text_of(merged);
    const Node written = servers_in({"import", "import.toml", toml});
    if (there != nullptr) there = written.find(server.name);
    const bool stays = merged.state == State::kept || merged.state == State::differs;
    if (const Node *used = stays ? here : there) merged.disabled = is_disabled(*used);
    if (auto done = write(merged, toml); !done) return done;
    out_.servers.push_back(std::move(merged));
    return {};
  }

  ServerMerge take() {
    out_.text = std::move(file_.text);
    return std::move(out_);
  }

 private:
  // Returns true if the profile's server `base` has the same definition. base_toml is compared,
  // because the names of variables for credentials contain the server's name.
  static bool is_same_under_base_name(const ImportedServer &server, const Node &base) {
    const Node tables = servers_in({"import", "import.toml", server.base_toml});
    const Node *definition = tables.find(server.base);
    return definition != nullptr && definition_differences(base, *definition).empty();
  }

  // Returns the tables for the profile. If an earlier imported server starts the same program, this
  // server is disabled, except in two cases: if the earlier server was not imported, or if this
  // server replaces one in the profile, whose `disabled` setting is then kept.
  std::string text_of(const MergedServer &merged) const {
    const ImportedServer &server = *merged.from;
    const auto twin = std::find_if(out_.servers.begin(), out_.servers.end(), [&](const auto &one) {
      return !server.same_as.empty() && one.from->name == server.same_as;
    });
    const bool absent = twin != out_.servers.end() &&
                        (twin->state == State::differs || twin->state == State::refused);
    const bool disabled = !server.same_as.empty() && !absent && merged.state != State::replaced;
    return disabled ? server.disabled_toml : server.toml;
  }

  Result<void> write(const MergedServer &merged, const std::string &toml) {
    std::string tables = toml;
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
