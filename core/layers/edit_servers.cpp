#include "layers/edit_servers.hpp"

#include <algorithm>

#include "layers/canonical.hpp"
#include "layers/edit_text.hpp"
#include "profile/parse.hpp"

namespace bulkhead {
namespace profiles {

const Member *servers_section(const Node &root) {
  for (const std::string_view name : {"mcpServers", "mcp_servers", "servers"}) {
    for (const Member &member : root.members) {
      if (member.name == name && member.value.kind == Kind::table) return &member;
    }
  }
  return nullptr;
}

namespace {

Result<Node> read_profile(const ProfileLayer &file) {
  const std::vector<ProfileLayer> layers{file};
  Diagnostics diagnostics(layers);
  Node root;
  if (file.text.find_first_not_of(" \t\r\n") == std::string::npos) {
    root.kind = Kind::table;  // valid TOML; in an empty JSON file, the edit fails
    return root;
  }
  if (parse_layer(layers.front(), 0, {}, &root, diagnostics)) return root;
  const std::vector<ProfileError> errors = diagnostics.take_errors();
  return fail(BH_E_INVALID, errors.empty() ? "the file cannot be read"
                                           : "line " + std::to_string(errors.front().line) + ": " +
                                                 errors.front().what);
}

const Node *find(const Node &root, std::string_view name) {
  const Member *section = servers_section(root);
  return section == nullptr ? nullptr : section->value.find(name);
}

// Returns the file's content as JSON, without this server and with its sections sorted. Two files
// that differ only in this server yield the same result.
std::string json_without(Node root, std::string_view name) {
  const Member *section = servers_section(root);
  if (section != nullptr) {
    const std::string key = section->name;
    for (Member &member : root.members) {
      if (member.name != key) continue;
      std::erase_if(member.value.members, [&](const Member &one) { return one.name == name; });
    }
    std::erase_if(root.members, [&](const Member &member) {
      return member.name == key && member.value.members.empty();
    });
  }
  // The order of sections is not compared: in TOML, removing a section's first table can move the
  // section after another one.
  std::sort(root.members.begin(), root.members.end(),
            [](const Member &a, const Member &b) { return a.name < b.name; });
  std::string out;
  append_json(out, root);
  return out;
}

// Returns `text` if it differs from `file` only in this server, and has the server if and only if
// `has_it` is set. Otherwise, returns BH_E_UNSUPPORTED.
Result<std::string> checked(const ProfileLayer &file, const Node &before, std::string_view name,
                            std::optional<std::string> text, bool has_it) {
  if (text) {
    ProfileLayer next = file;
    next.text = *text;
    const Result<Node> after = read_profile(next);
    if (after && (find(*after, name) != nullptr) == has_it &&
        json_without(*after, name) == json_without(before, name))
      return *std::move(text);
  }
  return fail(BH_E_UNSUPPORTED,
              "its server definitions cannot be edited by this command (" +
                  std::string(is_json(file) ? "no object \"mcpServers\""
                                            : "they are not separate tables [mcpServers.NAME]") +
                  "): edit the file by hand");
}

// Changes the server's `disabled` or `enabled` key. If it has neither, adds `disabled`.
std::optional<std::string> with_disabled(const ProfileLayer &file, const Node &root,
                                         std::string_view name, bool disabled) {
  for (const auto &[key, wanted] : {std::pair{"disabled", disabled}, {"enabled", !disabled}}) {
    const Node *value = find(root, name)->find(key);
    if (value == nullptr) continue;
    const std::string_view was = value->flag ? "true" : "false";
    const std::size_t at =
        is_json(file) ? json_offset(file.text, value->place) : toml_offset(file.text, value->place);
    if (value->kind != Kind::boolean || file.text.compare(at, was.size(), was) != 0)
      return std::nullopt;
    std::string out = file.text;
    return out.replace(at, was.size(), wanted ? "true" : "false");
  }
  return is_json(file) ? disable_in_json(file.text, root, name)
                       : disable_in_toml(file.text, root, name);
}

std::string json_of_rest(Node server) {
  std::erase_if(server.members, [](const Member &member) {
    return member.name == "disabled" || member.name == "enabled";
  });
  std::string out;
  append_json(out, server);
  return out;
}

}  // namespace
}  // namespace profiles

using namespace profiles;

Result<std::vector<std::string>> servers_of_file(const ProfileLayer &file) {
  const Result<Node> root = read_profile(file);
  if (!root) return std::unexpected(root.error());
  std::vector<std::string> out;
  if (const Member *section = servers_section(*root)) {
    for (const Member &member : section->value.members) out.push_back(member.name);
  }
  return out;
}

Result<std::string> file_with_server(const ProfileLayer &file, const NewServer &server) {
  const Result<Node> root = read_profile(file);
  if (!root) return std::unexpected(root.error());
  if (find(*root, server.name) != nullptr)
    return fail(BH_E_DENIED, "server " + in_quotes(server.name) + " already exists");
  std::optional<std::string> text =
      is_json(file) ? add_to_json(file.text, *root, server) : add_to_toml(file.text, *root, server);
  return checked(file, *root, server.name, std::move(text), true);
}

Result<std::string> file_with_tables(const ProfileLayer &file, std::string_view name,
                                     const std::string &toml) {
  const Result<Node> root = read_profile(file);
  if (!root) return std::unexpected(root.error());
  if (find(*root, name) != nullptr)
    return fail(BH_E_DENIED, "it already has a server " + in_quotes(name));
  const Result<Node> added = read_profile({"import", "import.toml", toml});
  const Node *server = added ? find(*added, name) : nullptr;
  if (server == nullptr)
    return fail(BH_E_INVALID, "the definition of " + in_quotes(name) + " is not valid TOML");
  if (is_json(file)) {
    std::string object;
    append_json(object, *server);
    return checked(file, *root, name, add_object_to_json(file.text, *root, name, object), true);
  }
  std::string text = file.text;
  if (!text.empty()) text += text.ends_with('\n') ? "\n" : "\n\n";
  return checked(file, *root, name, text + toml, true);
}

Result<std::string> file_without_server(const ProfileLayer &file, std::string_view name) {
  const Result<Node> root = read_profile(file);
  if (!root) return std::unexpected(root.error());
  if (find(*root, name) == nullptr)
    return fail(BH_E_NOT_FOUND, "it has no server " + in_quotes(name));
  std::optional<std::string> text = is_json(file) ? remove_from_json(file.text, *root, name)
                                                  : remove_from_toml(file.text, *root, name);
  return checked(file, *root, name, std::move(text), false);
}

Result<std::string> file_with_disabled(const ProfileLayer &file, std::string_view name,
                                       bool disabled) {
  const Result<Node> root = read_profile(file);
  if (!root) return std::unexpected(root.error());
  const Node *server = find(*root, name);
  if (server == nullptr) return fail(BH_E_NOT_FOUND, "it has no server " + in_quotes(name));
  if (is_disabled(*server) == disabled) return file.text;
  auto text =
      server->kind == Kind::table ? with_disabled(file, *root, name, disabled) : std::nullopt;
  Result<std::string> out = checked(file, *root, name, std::move(text), true);
  if (!out) return out;
  ProfileLayer next = file;
  next.text = *out;
  const Result<Node> after = read_profile(next);
  const Node *changed = find(*after, name);
  if (is_disabled(*changed) == disabled && json_of_rest(*changed) == json_of_rest(*server))
    return out;
  return fail(BH_E_UNSUPPORTED,
              "this server cannot be edited by this command: edit the file by hand");
}

}  // namespace bulkhead
