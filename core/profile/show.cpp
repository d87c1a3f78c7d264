#include "profile/show.hpp"

#include <unordered_set>

#include "profile/secrets.hpp"
#include "profile/server.hpp"

namespace bulkhead::profiles {

namespace {

class Shower {
 public:
  explicit Shower(Context &context) : context_(context) {}

  void root(const Node &root) {
    for (const Member &section : root.members) {
      if (section.name == "mcpServers")
        servers(section.value);
      else
        settings(section.value, join("", section.name), false);
    }
    defaults(root);
  }

 private:
  void add(const Place &place, std::string path, std::string value) {
    context_.profile.shown.push_back(
        {std::move(path), std::move(value), context_.diagnostics.origin(place)});
  }

  static std::string text_of(const Node &node) {
    std::string out;
    append_json(out, node);
    return node.kind == Kind::string ? node.text : out;
  }

  // A plugin's or the gateway's own settings. `secret`: a key above looks like a credential.
  void settings(const Node &node, const std::string &path, bool secret) {
    if (node.kind == Kind::table) {
      for (const Member &member : node.members)
        settings(member.value, join(path, member.name), secret || hides(member));
      return;
    }
    if (node.kind == Kind::array) {
      for (std::size_t i = 0; i < node.items.size(); ++i)
        settings(node.items[i], path + '[' + std::to_string(i) + ']', secret);
      if (node.items.empty()) add(node.place, path, "[]");
      return;
    }
    const bool text = node.kind == Kind::string;
    const bool plain = text && node.text.find("://") == std::string::npos;
    if (secret || (plain && credential_value(node.text)))
      add(node.place, path, std::string(kMask));
    else
      add(node.place, path, text && !plain ? masked_url(node.text) : text_of(node));
  }

  // Numbers and switches are no credentials ("max_tokens = 5", "keys = true").
  static bool hides(const Member &member) {
    const Kind kind = member.value.kind;
    return kind != Kind::number && kind != Kind::boolean && member.name != "sha256" &&
           credential_name(member.name);
  }

  void servers(const Node &table) {
    std::unordered_set<std::string_view> known;
    for (const ServerDef &used : context_.profile.servers) known.insert(used.name);
    for (const Member &entry : table.members)
      if (known.contains(entry.name)) server(entry.value, join("mcpServers", entry.name));
  }

  void server(const Node &table, const std::string &path) {
    for (const Member &member : table.members) {
      const std::string_view key = server_key(member.name);
      const std::string here = join(path, member.name);
      if (key.empty()) continue;  // ignored ones of other programs
      if (key == "env" || key == "headers") {
        for (const Member &value : member.value.members)
          add(value.value.place, join(here, value.name), std::string(kMask));
      } else if (key == "bearerToken") {
        add(member.value.place, here, std::string(kMask));
      } else if (key == "url") {
        add(member.value.place, here, masked_url(member.value.text));
      } else if (key == "args") {
        args(member.value, here);
      } else {
        settings(member.value, here, false);
      }
    }
  }

  void args(const Node &array, const std::string &path) {
    std::vector<std::string> texts;
    for (const Node &item : array.items) texts.push_back(item.text);
    texts = masked_args(texts);
    for (std::size_t i = 0; i < texts.size(); ++i)
      add(array.items[i].place, path + '[' + std::to_string(i) + ']', std::move(texts[i]));
  }

  void missing(const Node *section, std::string_view group, std::string_view key,
               std::string value) {
    if (section != nullptr && section->find(key) != nullptr) return;
    const std::string path = group.empty() ? std::string(key) : join(std::string(group), key);
    context_.profile.shown.push_back({path, std::move(value), {"default", "", 0}});
  }

  void defaults(const Node &root) {
    const Profile &profile = context_.profile;
    const Node *naming = root.find("naming");
    const Naming &n = profile.naming;
    missing(naming, "naming", "separator", n.separator);
    missing(naming, "naming", "prefix", n.prefix ? "always" : "never");
    missing(naming, "naming", "scheme", n.scheme);
    missing(naming, "naming", "long_names", n.shorten ? "shorten" : "error");
    missing(naming, "naming", "max_length", std::to_string(n.max_length));
    missing(naming, "naming", "names", n.strict_names ? "strict" : "any");
    missing(naming, "naming", "bad_names", n.bad_names_error ? "error" : "skip");
    for (const ExposeKey &key : expose_keys())
      missing(root.find("expose"), "expose", key.name, profile.expose.*key.flag ? "true" : "false");
    for (const LimitKey &key : limit_keys())
      missing(root.find("limits"), "limits", key.name, std::to_string(key.get(profile.limits)));
    const Node *approval = root.find("approval");
    missing(approval, "approval", "elicitation", profile.approval.elicitation ? "true" : "false");
    missing(approval, "approval", "api", profile.approval.api ? "true" : "false");
    const Node *pins = root.find("pins");
    constexpr std::string_view modes[] = {"off", "watch", "enforce"};
    missing(pins, "pins", "mode", std::string(modes[static_cast<int>(profile.pins.mode)]));
    missing(pins, "pins", "new_tools", profile.pins.accept_new ? "accept" : "hold");
    missing(root.find("gateway"), "gateway", "name", profile.server_name);
    missing(root.find("gateway"), "gateway", "metrics_listen", profile.metrics_listen);
    missing(root.find("gateway"), "gateway", "unknown_params",
            std::string(to_string(profile.unknown_params)));
    missing(&root, "", "state_dir", "");  // whoever loads the profile says where
  }

  Context &context_;
};

}  // namespace

void show(const Node &root, Context &context) {
  Shower(context).root(root);
}

}  // namespace bulkhead::profiles
