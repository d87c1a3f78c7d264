#include "profile/show.hpp"

#include <algorithm>
#include <unordered_set>

#include "profile/secrets.hpp"
#include "profile/server.hpp"
#include "profile/settings.hpp"

namespace bulkhead::profiles {

namespace {

class ShownWriter {
 public:
  explicit ShownWriter(Context &context) : context_(context) {}

  void root(const Node &root) {
    for (const Member &section : root.members) {
      if (section.name == "mcpServers")
        servers(section.value);
      else if (section.name == "plugin_trust")
        public_values(section.value, section.name);
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

  // Shows keys and digests that are public although they look like credentials.
  void public_values(const Node &node, const std::string &path) {
    for (const Member &member : node.members) {
      const std::string at = join(path, member.name);
      for (std::size_t i = 0; i < member.value.items.size(); ++i)
        add(member.value.items[i].place, at + '[' + std::to_string(i) + ']',
            text_of(member.value.items[i]));
      if (member.value.items.empty()) add(member.value.place, at, text_of(member.value));
    }
  }

  // Shows a setting of the gateway, of a plugin or of a server. `secret` is true if the name of the
  // setting or of a parent suggests a credential.
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

  // Returns true if the member's name suggests a credential. Numbers and booleans are not
  // credentials ("max_tokens = 5", "keys = true").
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

  struct KeyWriter {
    std::string_view key;
    void (ShownWriter::*write)(const Node &value, const std::string &path);
  };

  void server(const Node &table, const std::string &path) {
    static constexpr KeyWriter kWriters[] = {
        {"env", &ShownWriter::pairs},          {"headers", &ShownWriter::pairs},
        {"bearerToken", &ShownWriter::secret}, {"url", &ShownWriter::url},
        {"args", &ShownWriter::args},
    };
    for (const Member &member : table.members) {
      const std::string_view key = server_key(member.name);
      if (key.empty()) continue;  // a key of another program, which is ignored
      const std::string here = join(path, member.name);
      const auto row = std::find_if(std::begin(kWriters), std::end(kWriters),
                                    [&](const KeyWriter &writer) { return writer.key == key; });
      if (row == std::end(kWriters))
        settings(member.value, here, false);
      else
        (this->*row->write)(member.value, here);
    }
  }

  void pairs(const Node &table, const std::string &path) {
    for (const Member &value : table.members) secret(value.value, join(path, value.name));
  }
  void secret(const Node &value, const std::string &path) {
    add(value.place, path, std::string(kMask));
  }
  void url(const Node &value, const std::string &path) {
    add(value.place, path, masked_url(value.text));
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
    for (Setting &setting : settings_of(context_.profile))
      if (setting.value)
        missing(root.find(setting.section), setting.section, setting.key,
                *std::move(setting.value));
    // Shown as empty, because the caller of the loader chooses the default.
    missing(&root, "", "state_dir", "");
  }

  Context &context_;
};

}  // namespace

void show(const Node &root, Context &context) {
  ShownWriter(context).root(root);
}

}  // namespace bulkhead::profiles
