#include "layers/user_layer.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "layers/canonical.hpp"
#include "profile/parse.hpp"
#include "profile/secrets.hpp"
#include "profile/server_entry_tree.hpp"

namespace bulkhead {
namespace profiles {
namespace {

constexpr std::string_view kServers = "mcpServers";

Result<Node> read_user_layer(const ProfileLayer &layer) {
  std::vector<ProfileLayer> layers{layer};
  layers[0].lenient = true;  // only the gateway writes this file
  Diagnostics diagnostics(layers);
  Node root(Kind::table, {});
  if (layer.text.find_first_not_of(" \t\r\n") == std::string::npos) return root;
  const bool good = parse_layer(layer, 0, {}, &root, diagnostics);
  if (good) root = canonical_layer(std::move(root), layers[0], diagnostics);
  if (!good || diagnostics.failed()) {
    const std::vector<ProfileError> errors = diagnostics.take_errors();
    return fail(BH_E_INVALID, errors.empty() ? layer.file : to_string(errors.front()));
  }
  return root;
}

Node &servers_of(Node &root) {
  for (Member &member : root.members) {
    if (member.name == kServers) return member.value;
  }
  Member &made = root.members.emplace_back();
  made.name = kServers;
  made.value = Node(Kind::table, {});
  return made.value;
}

// Serializes the layer with a separate line for each section and each server.
std::string written(const Node &root) {
  std::string out = "{";
  for (std::size_t i = 0; i < root.members.size(); ++i) {
    const Member &section = root.members[i];
    out += i == 0 ? "\n  " : ",\n  ";
    append_json_string(out, section.name);
    out += ": ";
    if (section.name != kServers) {
      append_json(out, section.value);
      continue;
    }
    out += '{';
    for (std::size_t k = 0; k < section.value.members.size(); ++k) {
      out += k == 0 ? "\n    " : ",\n    ";
      append_json_string(out, section.value.members[k].name);
      out += ": ";
      append_json(out, section.value.members[k].value);
    }
    out += section.value.members.empty() ? "}" : "\n  }";
  }
  return out + "\n}\n";
}

class JsonObject {
 public:
  explicit JsonObject(std::string *out) : out_(out) { *out_ += '{'; }
  ~JsonObject() { *out_ += '}'; }
  JsonObject(const JsonObject &) = delete;
  JsonObject &operator=(const JsonObject &) = delete;

  void name(std::string_view key) {
    if (!out_->ends_with('{')) *out_ += ',';
    append_json_string(*out_, key);
    *out_ += ':';
  }
  void text(std::string_view key, const std::string &value) {
    if (value.empty()) return;
    name(key);
    append_json_string(*out_, value);
  }
  void texts(std::string_view key, const std::vector<std::string> &values) {
    name(key);
    *out_ += '[';
    for (const std::string &value : values) {
      if (!out_->ends_with('[')) *out_ += ',';
      append_json_string(*out_, value);
    }
    *out_ += ']';
  }
  void json(std::string_view key, std::string_view value) {
    name(key);
    *out_ += value;
  }
  // Writes the number unless it is the default.
  void number(std::string_view key, std::uint64_t value, std::uint64_t usual) {
    if (value != usual) json(key, std::to_string(value));
  }
  void masked(std::string_view key, const std::map<std::string, std::string> &values) {
    if (values.empty()) return;
    name(key);
    JsonObject object(out_);
    for (const auto &[member, value] : values) object.text(member, std::string(kMask));
  }

 private:
  std::string *out_;
};

}  // namespace
}  // namespace profiles

Result<std::string> with_server(const ProfileLayer &layer, const ServerEntry &entry) {
  using namespace profiles;
  Node definition;
  if (!to_tree(entry, &definition)) return fail(BH_E_INVALID, "the definition is invalid");
  auto root = read_user_layer(layer);
  if (!root.has_value()) return std::unexpected(root.error());
  Node &servers = servers_of(*root);
  if (servers.find(entry.id) != nullptr) {
    return fail(BH_E_DENIED, "a server with that name already exists");
  }
  servers.members.push_back({entry.id, {}, std::move(definition)});
  return written(*root);
}

Result<std::string> without_server(const ProfileLayer &layer, std::string_view name) {
  using namespace profiles;
  auto root = read_user_layer(layer);
  if (!root.has_value()) return std::unexpected(root.error());
  const std::size_t removed = std::erase_if(
      servers_of(*root).members, [name](const Member &member) { return member.name == name; });
  if (removed == 0) return fail(BH_E_NOT_FOUND, "no server has that name");
  return written(*root);
}

namespace profiles {
namespace {

// Adds the server's process-related keys, with the names that they have in a profile.
void add_process(JsonObject &object, const ServerDef &def, std::string *out) {
  const SandboxRules usual;
  const SandboxRules &box = def.sandbox;
  if (box.host_ipc) {
    object.name("sandbox");
    JsonObject table(out);
    table.text("mode", std::string(to_string(box.mode)));
    table.text("ipc", "host");
  } else if (box.mode != usual.mode) {
    object.text("sandbox", std::string(to_string(box.mode)));
  }
  if (!box.read.empty() || !box.write.empty()) {
    object.name("sandbox_paths");
    JsonObject paths(out);
    if (!box.read.empty()) paths.texts("read", box.read);
    if (!box.write.empty()) paths.texts("write", box.write);
  }
  if (!box.network) object.json("network", "false");
  object.number("memory_bytes", box.memory_bytes, usual.memory_bytes);
  object.number("processes", box.processes, usual.processes);
  object.number("cache_bytes", box.cache_bytes, usual.cache_bytes);
  if (def.lazy) object.text("start", "lazy");
  object.number("idle_stop_ms", def.idle_stop_ms, 0);
  object.number("pool_size", def.pool_size, 1);
  if (!def.pool_safe_tools.empty()) object.texts("pool_safe_tools", def.pool_safe_tools);
}

void add_bounds(JsonObject &object, const ServerDef &def, std::string *out) {
  if (def.timeout_ms) object.json("timeout_ms", std::to_string(*def.timeout_ms));
  if (!def.tool_timeouts_ms.empty()) {
    object.name("tool_timeouts");
    JsonObject tools(out);
    for (const auto &[tool, ms] : def.tool_timeouts_ms) tools.json(tool, std::to_string(ms));
  }
  if (def.connect_timeout_ms) {
    object.json("connect_timeout_ms", std::to_string(*def.connect_timeout_ms));
  }
  if (def.protocol != ProtocolPin::automatic) {
    object.text("protocol", std::string(to_string(def.protocol)));
  }
  if (def.session == SessionScope::per_client) object.text("session", "per-client");
  if (def.roots) object.text("roots", std::string(to_string(*def.roots)));
  if (def.roots == RootsMode::static_list) object.texts("root_folders", def.root_folders);
  object.number("max_in_flight", def.max_in_flight, ServerDef{}.max_in_flight);
  object.text("compartment", def.compartment);
}

}  // namespace
}  // namespace profiles

std::string masked_json(const ServerDef &def) {
  using namespace profiles;
  std::string out;
  {
    JsonObject object(&out);
    object.text("type", def.type);
    object.text("command", def.command);
    if (!def.args.empty()) object.texts("args", masked_args(def.args));
    object.masked("env", def.env);
    object.text("cwd", def.cwd);
    object.text("url", masked_url(def.url));
    object.masked("headers", def.headers);
    if (def.allow_tools.has_value()) object.texts("allowTools", *def.allow_tools);
    if (!def.deny_tools.empty()) object.texts("denyTools", def.deny_tools);
    add_process(object, def, &out);
    add_bounds(object, def, &out);
    object.name("enabled");
    out += def.disabled ? "false" : "true";
  }
  return out;
}

}  // namespace bulkhead
