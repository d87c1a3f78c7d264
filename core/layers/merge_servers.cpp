#include "layers/merge_servers.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "layers/edit_servers.hpp"
#include "layers/edit_text.hpp"
#include "profile/parse.hpp"
#include "profile/server.hpp"

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

// `here` is the profile's definition, `there` the imported one.
std::vector<std::string> differences_of(const Node &here, const Node &there) {
  const auto a = keys_of_server(here), b = keys_of_server(there);
  std::vector<std::string> out;
  for (const std::string_view key : server_keys()) {
    static constexpr std::string_view kOwn[] = {"command", "args",    "env",        "cwd",
                                                "url",     "headers", "bearerToken"};
    const auto in_a = a.find(key), in_b = b.find(key);
    const Node *mine = in_a == a.end() ? nullptr : in_a->second;
    const Node *theirs = in_b == b.end() ? nullptr : in_b->second;
    if (key == "type") {
      if (type_of(here, a) != type_of(there, b)) out.emplace_back(key);
    } else if (key != "disabled" && key != "enabled" &&
               (theirs != nullptr ||
                std::find(std::begin(kOwn), std::end(kOwn), key) != std::end(kOwn))) {
      add_differences(key, mine, theirs, &out);
    }
  }
  return out;
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
               base != nullptr && differences_of(*base, *there).empty()) {
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
  Result<void> write(const MergedServer &merged) {
    if (merged.state == State::replaced) {
      auto text = file_without_server(file_, merged.name);
      if (!text) return std::unexpected(text.error());
      file_.text = *std::move(text);
    } else if (merged.state != State::added) {
      return {};
    }
    auto text = file_with_tables(file_, merged.name, merged.from->toml);
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
