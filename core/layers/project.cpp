#include "layers/project.hpp"

#include <algorithm>
#include <filesystem>

#include "bulkhead/cpp/json_writer.hpp"
#include "layers/canonical.hpp"
#include "layers/project_entry.hpp"
#include "profile/parse.hpp"
#include "profile/secrets.hpp"
#include "profile/server.hpp"
#include "profile/sha256.hpp"

namespace bulkhead {

namespace profiles {

namespace {

void append_canonical(std::string &out, const Node &node);

void append_table(std::string &out, const Node &table) {
  std::vector<const Member *> members;
  for (const Member &member : table.members) members.push_back(&member);
  std::sort(members.begin(), members.end(),
            [](const Member *a, const Member *b) { return a->name < b->name; });
  out += '{';
  for (const Member *member : members) {
    if (!out.ends_with('{')) out += ',';
    bh::json::append_quoted(&out, member->name);
    out += ':';
    append_canonical(out, member->value);
  }
  out += '}';
}

// Appends canonical JSON. The recursion is limited by kProfileDepth.
void append_canonical(std::string &out, const Node &node) {
  switch (node.kind) {
    case Kind::null:
    case Kind::date:  // TOML only; invalid in all keys of a server
      out += "null";
      break;
    case Kind::boolean:
      out += node.flag ? "true" : "false";
      break;
    case Kind::number:
      out += node.text;
      break;
    case Kind::string:
      bh::json::append_quoted(&out, node.text);
      break;
    case Kind::array:
      out += '[';
      for (std::size_t i = 0; i < node.items.size(); ++i) {
        if (i > 0) out += ',';
        append_canonical(out, node.items[i]);
      }
      out += ']';
      break;
    case Kind::table:
      append_table(out, node);
      break;
  }
}

// Returns the text of a string node, and the JSON of any other node.
std::string text_of(const Node &node) {
  if (node.kind == Kind::string) return node.text;
  std::string out;
  append_canonical(out, node);
  return out;
}

// Returns a copy for display, in which credentials are masked. If `masked` is true, all strings are
// masked.
Node without_credentials(Node node, bool masked) {
  if (node.kind == Kind::string && (masked || credential_value(node.text))) node.text = kMask;
  for (Node &item : node.items) item = without_credentials(std::move(item), masked);
  for (Member &member : node.members)
    member.value =
        without_credentials(std::move(member.value), masked || credential_name(member.name));
  return node;
}

class EntryReader {
 public:
  EntryReader(const Member &member, const std::string &file) : member_(member) {
    entry_.name = member.name;
    entry_.line = member.place.line;
    entry_.serialisation = project_serialisation(member, file);
    entry_.digest = sha256_hex(entry_.serialisation);
    entry_.cwd = project_cwd(nullptr, file);
    file_ = &file;
  }

  ProjectEntry read() {
    if (member_.value.kind != Kind::table) {
      entry_.others.emplace_back("", std::string(to_string(member_.value.kind)));
      return std::move(entry_);
    }
    for (const Member &member : member_.value.members) read_key(member);
    return std::move(entry_);
  }

 private:
  struct KeyReader {
    std::string_view key;
    // Returns false if the key should be shown among the other keys (see add_other()).
    bool (EntryReader::*read)(const Node &value);
  };

  void read_key(const Member &member) {
    static constexpr KeyReader kReaders[] = {
        {"command", &EntryReader::read_command},
        {"args", &EntryReader::read_args},
        {"cwd", &EntryReader::read_cwd},
        {"url", &EntryReader::read_url},
        {"env", &EntryReader::read_env},
        {"headers", &EntryReader::read_headers},
        {"bearerToken", &EntryReader::read_bearer},
        {"bearer_token_env_var", &EntryReader::read_bearer_variable},
    };
    const std::string_view key = server_key(member.name);
    for (const KeyReader &reader : kReaders)
      if (reader.key == key && (this->*reader.read)(member.value)) return;
    add_other(member, key);
  }

  bool read_command(const Node &value) {
    if (value.kind != Kind::string || !entry_.command.empty()) return false;
    entry_.command = value.text;
    return true;
  }

  bool read_args(const Node &value) {
    if (value.kind != Kind::array || !entry_.args.empty()) return false;
    for (const Node &item : value.items) {
      entry_.args.push_back(text_of(item));
      add_references(entry_.args.back(), true);
    }
    return true;
  }

  bool read_cwd(const Node &value) {
    if (value.kind != Kind::string) return false;
    entry_.cwd = project_cwd(&value, *file_);
    return true;
  }

  bool read_url(const Node &value) {
    if (value.kind != Kind::string || !entry_.url.empty()) return false;
    entry_.url = value.text;
    add_references(value.text);
    return true;
  }

  bool read_env(const Node &value) { return read_pairs(value, &entry_.env); }
  bool read_headers(const Node &value) { return read_pairs(value, &entry_.headers); }

  bool read_bearer(const Node &value) {
    entry_.headers.emplace_back("Authorization", "Bearer " + text_of(value));
    add_references(text_of(value));
    return true;
  }

  bool read_bearer_variable(const Node &value) {
    add_variable(text_of(value));
    return false;
  }

  // Adds a key that has no reader, or whose reader returned false.
  void add_other(const Member &member, std::string_view key) {
    // Sandbox keys and names of environment variables are never masked.
    const bool plain = key.starts_with("sandbox");
    const bool masked = key == "env" || key == "headers" ||
                        (key != "bearer_token_env_var" && credential_name(member.name));
    std::string json;
    append_canonical(json, plain ? member.value : without_credentials(member.value, masked));
    entry_.others.emplace_back(member.name, std::move(json));
  }

  bool read_pairs(const Node &table, std::vector<std::pair<std::string, std::string>> *to) {
    if (table.kind != Kind::table) return false;
    for (const Member &pair : table.members) {
      to->emplace_back(pair.name, text_of(pair.value));
      add_references(to->back().second);
    }
    return true;
  }

  // Adds the variable names of all "${...}" references, including those that expand() rejects. If
  // only_inputs is true, adds only the variables from which ${input:ID} is read.
  void add_references(std::string_view text, bool only_inputs = false) {
    for (std::size_t open; (open = text.find("${")) != std::string_view::npos;) {
      text.remove_prefix(open + 2);
      std::string_view body = text.substr(0, text.find('}'));
      if (body.starts_with("input:")) {
        add_variable(variable_for(entry_.name, body.substr(6)));
        continue;
      }
      if (only_inputs) continue;
      if (body.starts_with("env:")) body.remove_prefix(4);
      add_variable(std::string(body.substr(0, body.find(":-"))));
    }
  }

  void add_variable(std::string name) {
    auto &all = entry_.variables;
    if (std::find(all.begin(), all.end(), name) == all.end()) all.push_back(std::move(name));
  }

  const Member &member_;
  const std::string *file_ = nullptr;
  ProjectEntry entry_;
};

}  // namespace

std::string project_serialisation(const Member &entry, const std::string &file) {
  std::string out = "{\"file\":";
  bh::json::append_quoted(&out, file);
  out += ",\"name\":";
  bh::json::append_quoted(&out, entry.name);
  out += ",\"server\":";
  append_canonical(out, entry.value);
  return out + '}';
}

std::string project_cwd(const Node *cwd, const std::string &file) {
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (cwd == nullptr || cwd->text.empty()) return folder.string();
  return (folder / cwd->text).lexically_normal().string();
}

}  // namespace profiles

std::variant<std::vector<ProjectEntry>, std::vector<ProfileError>> read_project(
    const ProfileLayer &layer) {
  using namespace profiles;
  const std::vector<ProfileLayer> layers{layer};
  Diagnostics diagnostics(layers);
  Node root;
  if (!parse_layer(layer, 0, {}, &root, diagnostics)) return diagnostics.take_errors();
  root = canonical_layer(std::move(root), layer, diagnostics);
  if (diagnostics.failed()) return diagnostics.take_errors();
  std::vector<ProjectEntry> out;
  if (const Node *servers = root.find("mcpServers"))
    for (const Member &entry : servers->members)
      out.push_back(EntryReader(entry, layer.file).read());
  return out;
}

}  // namespace bulkhead
