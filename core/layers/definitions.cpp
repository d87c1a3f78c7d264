#include "layers/definitions.hpp"

#include <algorithm>
#include <utility>

#include "corporation/corp_path.hpp"
#include "profile/parse.hpp"
#include "profile/server.hpp"

namespace bulkhead {
namespace profiles {
namespace {

constexpr std::size_t kSourceBytes = 64;

class DefinitionReader {
 public:
  DefinitionReader(const std::vector<ProfileLayer> &layers, const Profile &profile)
      : layers_(layers) {
    scratch_.server_holds = profile.server_holds;
    // read_server() needs the following members.
    scratch_.naming = profile.naming;
    scratch_.limits = profile.limits;
    scratch_.connectors = profile.connectors;
  }

  void read(Node &&node) {
    Member entry;
    entry.place = node.place;
    Node *name = member(node, "name");
    if (name == nullptr || name->kind != Kind::string) {
      return refuse("", "\"name\" (a string) is required");
    }
    entry.name = std::move(name->text);
    std::string source;
    if (Node *given = member(node, "source")) {
      if (given->kind != Kind::string || given->text.size() > kSourceBytes) {
        return refuse(entry.name, "\"source\" must be a string of at most 64 bytes");
      }
      source = std::move(given->text);
    }
    std::erase_if(node.members,
                  [](const Member &m) { return m.name == "name" || m.name == "source"; });
    entry.value = std::move(node);
    if (std::string why = refused_name(entry.name, scratch_.naming, false); !why.empty()) {
      return refuse(entry.name, std::move(why));
    }
    if (std::string why = hold_reason(entry); !why.empty()) {
      return refuse(entry.name, std::move(why));
    }
    const auto same = [&](const ServerDef &def) { return def.name == entry.name; };
    if (std::any_of(out_.servers.begin(), out_.servers.end(), same)) {
      return refuse(entry.name, "a definition with this name already exists");
    }
    add(entry, std::move(source));
  }

  DefinedServers take_result() { return std::move(out_); }

 private:
  static Node *member(Node &node, std::string_view name) {
    for (Member &m : node.members) {
      if (m.name == name) return &m.value;
    }
    return nullptr;
  }

  // Returns the reason why this server or one of its keys must not be changed, or an empty string
  // if no layer protects them.
  std::string hold_reason(const Member &entry) const {
    if (scratch_.server_holds.empty()) return {};
    Node servers(Kind::table, entry.place), layer(Kind::table, entry.place);
    servers.members.push_back(entry);
    layer.members.push_back({"mcpServers", entry.place, std::move(servers)});
    for (const ProfileHold &hold : scratch_.server_holds)
      if (!find_touches(layer, hold.path, Node(Kind::table, entry.place)).empty()) return hold.says;
    return {};
  }

  void add(const Member &entry, std::string source) {
    Diagnostics diagnostics(layers_);
    const ProfileEnvironment environment{[](const std::string &) { return std::nullopt; }, ""};
    Context context{environment, diagnostics, scratch_, true};
    scratch_.servers.clear();
    read_server(entry, context);
    if (scratch_.servers.empty()) {
      const std::vector<ProfileError> errors = diagnostics.take_errors();
      const std::string prefix = join("mcpServers", entry.name) + ".";
      std::string why = errors.empty() ? "it is not a server definition" : errors.front().what;
      if (!errors.empty() && errors.front().path.starts_with(prefix)) {
        why = errors.front().path.substr(prefix.size()) + ": " + why;
      }
      return refuse(entry.name, std::move(why));
    }
    ServerDef def = std::move(scratch_.servers.front());
    def.origin = {};
    def.source = std::move(source);
    out_.servers.push_back(std::move(def));
  }

  void refuse(std::string_view name, std::string why) {
    out_.refused.push_back({printable(name, 200), std::move(why)});
  }

  const std::vector<ProfileLayer> &layers_;
  Profile scratch_;
  DefinedServers out_;
};

}  // namespace
}  // namespace profiles

Result<DefinedServers> read_definitions(std::string_view json, const Profile &profile) {
  using namespace profiles;
  std::vector<ProfileLayer> layers(1);
  layers[0].name = "given";
  layers[0].file = "definitions.json";
  layers[0].text = std::string("{\"servers\":").append(json).append("\n}");
  Diagnostics diagnostics(layers);
  Node root;
  if (!parse_layer(layers[0], 0, {}, &root, diagnostics)) {
    const std::vector<ProfileError> errors = diagnostics.take_errors();
    return fail(BH_E_INVALID, "cannot parse the definitions: " +
                                  (errors.empty() ? std::string("not JSON") : errors.front().what));
  }
  // The text was inserted between the braces of an object, so malicious text could have closed the
  // array and added members to the object.
  if (root.members.size() != 1 || root.members[0].value.kind != Kind::array) {
    return fail(BH_E_INVALID, "the definitions must be a JSON array of objects");
  }
  std::vector<Node> &items = root.members[0].value.items;
  if (items.size() > kGivenServers) {
    return fail(BH_E_INVALID, "more than " + std::to_string(kGivenServers) + " definitions");
  }
  for (const Node &item : items) {
    if (item.kind != Kind::table) {
      return fail(BH_E_INVALID, "the definitions must be a JSON array of objects");
    }
  }
  DefinitionReader reader(layers, profile);
  for (Node &item : items) reader.read(std::move(item));
  return reader.take_result();
}

}  // namespace bulkhead
