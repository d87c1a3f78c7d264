#include "profile/foreign_references.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "profile/secrets.hpp"
#include "profile/server.hpp"

namespace bulkhead::profiles {
namespace {

// `bulkhead import` reads the files of the clients that use these references.
constexpr std::string_view kGeminiImport =
    "; `bulkhead import` converts servers in Gemini CLI's settings";
constexpr std::string_view kEditorImport =
    "; `bulkhead import --folder` converts servers in .vscode/mcp.json";

// Returns NAME if the value is $NAME, and an empty view otherwise.
std::string_view dollar_name(std::string_view value) {
  constexpr std::string_view letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  constexpr std::string_view rest = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
  value.remove_prefix(auth_scheme(value).size());
  if (value.size() < 3 || value[0] != '$' || letters.find(value[1]) == value.npos) return {};
  return value.find_first_not_of(rest, 1) == value.npos ? value.substr(1) : std::string_view();
}

// Returns a VS Code variable that the text contains, such as "${workspaceFolder}". Returns an empty
// view if there is none.
std::string_view editor_variable(std::string_view text) {
  for (const std::string_view name :
       {"${workspaceFolder}", "${workspaceFolderBasename}", "${userHome}"})
    if (text.find(name) != text.npos) return name;
  return {};
}

class ForeignFinder {
 public:
  void read(const Node &server) {
    for (const Member &member : server.members) {
      const std::string_view key = server_key(member.name);
      if (key == "env" || key == "headers") {
        for (const Member &pair : member.value.members)
          expanded(pair.value, member.name + '.' + pair.name);
      } else if (key == "url" || key == "bearerToken") {
        expanded(member.value, member.name);
      } else if (key == "command" || key == "cwd") {
        literal(member.value, member.name);
      } else if (key == "args") {
        read_args(member);
      }
    }
  }
  std::vector<ForeignReference> take() { return std::move(out_); }

 private:
  void read_args(const Member &args) {
    bool script = false;  // the previous argument is "-c"
    for (std::size_t i = 0; i < args.value.items.size(); ++i) {
      const Node &item = args.value.items[i];
      const std::string path = args.name + '[' + std::to_string(i) + ']';
      literal(item, path);
      if (!script) dollar(item, path, false);
      script = item.text == "-c";
    }
  }

  // A value in which the gateway expands references.
  void expanded(const Node &value, const std::string &path) { dollar(value, path, true); }

  void literal(const Node &value, const std::string &path) {
    const std::string_view name = editor_variable(value.text);
    if (value.kind != Kind::string || name.empty()) return;
    std::string what = '`' + std::string(name) + "` is not a reference here; write the path itself";
    if (name == "${workspaceFolder}") what += kEditorImport;
    add(value, path, std::move(what));
  }

  void dollar(const Node &value, const std::string &path, bool expands) {
    if (value.kind != Kind::string) return;
    std::string_view text = value.text;
    if (text.starts_with('-')) text = text.substr(text.find('=') + 1);
    const std::string name(dollar_name(text));
    if (name.empty()) return;
    // The name is not quoted: the value may be a password that begins with "$".
    std::string what = "`$NAME` is not a reference here; ";
    if (expands) {
      what += "write `${NAME}`" + std::string(kGeminiImport);
    } else {
      what +=
          "references in args are not expanded: write the value itself, or pass it in env as "
          "`${NAME}`";
    }
    add(value, path, std::move(what));
  }

  void add(const Node &value, const std::string &path, std::string what) {
    out_.push_back({value.place, path, std::move(what)});
  }

  std::vector<ForeignReference> out_;
};

}  // namespace

std::vector<ForeignReference> foreign_references(const Node &server) {
  ForeignFinder finder;
  finder.read(server);
  return finder.take();
}

}  // namespace bulkhead::profiles
