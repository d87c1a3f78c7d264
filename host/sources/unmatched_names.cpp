#include "sources/unmatched_names.hpp"

#include <algorithm>
#include <utility>

#include "bulkhead/cpp/json.hpp"
#include "catalog/names.hpp"
#include "common/suggestion.hpp"
#include "common/text.hpp"
#include "mcp/for_each.hpp"
#include "mcp/scan.hpp"
#include "profile/diagnostics.hpp"
#include "sources/known_tools.hpp"

namespace bulkhead::program {
namespace {

using bh::json::member_text;

// Finds the string literals with which a condition compares a variable.
class Literals {
 public:
  explicit Literals(std::string_view condition) : text_(condition) {}

  // Returns the literals that the condition compares with a variable. `variable` is the last
  // segment of its path, such as tool_name for mcp.request.tool_name.
  std::vector<std::string> compared_with(std::string_view variable) const {
    std::vector<std::string> out;
    for (std::size_t at = text_.find(variable); at != text_.npos;
         at = text_.find(variable, at + 1)) {
      const std::size_t end = at + variable.size();
      if (end < text_.size() && is_name(text_[end])) continue;
      if (at != 0 && (is_name(text_[at - 1]) || inside_literal(at))) continue;
      read(text_.substr(end), &out);
    }
    return out;
  }

 private:
  static bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }
  static std::string_view trimmed(std::string_view text) {
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    return first == text.npos ? std::string_view() : text.substr(first);
  }

  bool inside_literal(std::size_t end) const {
    char quote = 0;
    for (std::size_t i = 0; i < end; ++i) {
      if (quote == 0) {
        if (text_[i] == '"' || text_[i] == '\'') quote = text_[i];
      } else if (text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        quote = 0;
      }
    }
    return quote != 0;
  }

  // Reads `== "x"` or `in ["x", "y"]`.
  static void read(std::string_view rest, std::vector<std::string> *out) {
    rest = trimmed(rest);
    if (rest.starts_with("==")) {
      rest.remove_prefix(2);
      literal(&rest, out);
    } else if (rest.starts_with("in")) {
      rest = trimmed(rest.substr(2));
      if (!rest.starts_with('[')) return;
      do {
        rest.remove_prefix(1);
        if (!literal(&rest, out)) return;
        rest = trimmed(rest);
      } while (rest.starts_with(','));
    }
  }
  // Removes a literal from the front of `rest`. Literals with escape sequences are not supported.
  static bool literal(std::string_view *rest, std::vector<std::string> *out) {
    *rest = trimmed(*rest);
    if (!rest->starts_with('"') && !rest->starts_with('\'')) return false;
    const std::size_t end = rest->find(rest->front(), 1);
    if (end == rest->npos) return false;
    const std::string_view text = rest->substr(1, end - 1);
    rest->remove_prefix(end + 1);
    if (text.find('\\') == text.npos && !text.empty()) out->emplace_back(text);
    return true;
  }

  std::string_view text_;
};

class Search {
 public:
  explicit Search(const Profile &profile)
      : profile_(profile), names_(profile.naming), known_(known_tools(profile)) {
    for (const KnownTools &one : known_) servers_.push_back(one.server);
  }

  std::vector<std::string> run() {
    if (known_.empty()) return {};
    for (const PluginUse &use : profile_.policies) {
      mcp::for_each_item(array(use.config_json, "profile_rules"),
                         [this](std::string_view layer) { rules(layer); });
    }
    for (const ServerDef &def : profile_.servers) {
      if (!def.allow_tools || def.disabled) continue;
      const auto &list = *def.allow_tools;
      const bool all = std::find(list.begin(), list.end(), "*") != list.end();
      for (const std::string &tool : list) {
        if (tool == "*") continue;
        allowed(def.origin.file, std::to_string(def.origin.line), "allowTools of " + def.name,
                def.name, tool, all);
      }
    }
    return std::move(found_);
  }

 private:
  static std::string_view array(std::string_view object, std::string_view key) {
    const std::string_view value = mcp::member(object, key);
    return value.starts_with('[') ? value : "[]";
  }

  void rules(std::string_view layer) {
    if (member_text(layer, "layer") == "corp") return;
    file_ = member_text(layer, "file");
    lines_ = mcp::member(layer, "lines");
    sections(mcp::member(layer, "sections"), "");
  }

  // The recursion is safe because the profile's parser limits the nesting depth.
  void sections(std::string_view object, const std::string &above) {
    std::string scratch;
    mcp::for_each_member(object, [&](std::string_view key, std::string_view value) {
      const std::string name(mcp::unquote(key, &scratch));
      const std::string path = profiles::join(above, name);
      if (above == "security.servers") return server_table(path, name, value);
      if ((name == "if" || name == "match") && value.starts_with('"')) {
        return condition(path, member_text(object, name));
      }
      if (value.starts_with('{')) sections(value, path);
    });
  }

  void server_table(const std::string &path, const std::string &name, std::string_view table) {
    if (find(name) == nullptr) return no_server(path, name);
    std::string scratch;
    mcp::for_each_item(array(table, "allowed_tools"), [&](std::string_view item) {
      if (!item.starts_with('"')) return;
      allowed(file_, line_of(profiles::join(path, "allowed_tools")),
              profiles::join(path, "allowed_tools"), name,
              std::string(mcp::unquote(item, &scratch)));
    });
  }

  void condition(const std::string &path, const std::string &text) {
    const Literals literals(text);
    std::vector<const KnownTools *> subjects;
    for (const std::string &server : literals.compared_with("server_name")) {
      const KnownTools *known = find(server);
      known == nullptr ? no_server(path, server) : subjects.push_back(known);
    }
    if (subjects.empty()) {
      for (const KnownTools &one : known_) subjects.push_back(&one);
    }
    for (const std::string &tool : literals.compared_with("tool_name")) {
      const bool possible = std::any_of(subjects.begin(), subjects.end(), [&](const auto *one) {
        return !one->tools || one->lists(tool);
      });
      if (const auto original = listed_name(tool)) {
        add(file_, line_of(path), path,
            shown_name(tool) +
                " is the name that clients see; rules match the tool's name on the server, " +
                shown_name(*original));
      } else if (!possible) {
        no_tool(file_, line_of(path), path, subjects, tool);
      }
    }
  }

  void allowed(const std::string &file, const std::string &line, const std::string &key,
               const std::string &server, const std::string &tool, bool all = false) {
    const KnownTools *known = find(server);
    if (known != nullptr && known->tools && !known->lists(tool)) {
      no_tool(file, line, key, {known}, tool,
              all ? ""
                  : "This entry allows nothing, and tools that the list does not name are blocked");
    }
  }

  // If no server has a tool with this name but clients see a tool under this name, returns that
  // tool's original name.
  std::optional<std::string> listed_name(const std::string &tool) const {
    const auto lists = [&](const KnownTools &one) { return one.lists(tool); };
    if (std::any_of(known_.begin(), known_.end(), lists)) return std::nullopt;
    for (const KnownTools &one : known_) {
      const auto original = original_name(one, names_, names_.aliased(tool));
      if (original && one.lists(*original)) return original;
    }
    return std::nullopt;
  }

  const KnownTools *find(std::string_view server) const {
    const auto at = std::find_if(known_.begin(), known_.end(),
                                 [&](const KnownTools &one) { return one.server == server; });
    return at == known_.end() ? nullptr : &*at;
  }

  std::string line_of(const std::string &path) const {
    return std::string(mcp::member(lines_, path));
  }

  void no_server(const std::string &path, const std::string &name) {
    add(file_, line_of(path), path,
        "no server is named " + shown_name(name) + after(suggestion(name, servers_)));
  }

  void no_tool(const std::string &file, const std::string &line, const std::string &key,
               const std::vector<const KnownTools *> &servers, const std::string &tool,
               std::string_view effect = {}) {
    std::vector<std::string> tools;
    for (const KnownTools *one : servers) {
      if (one->tools) tools.insert(tools.end(), one->tools->begin(), one->tools->end());
    }
    const std::string who =
        servers.size() == 1 ? "server " + shown_name(servers.front()->server) + " lists no tool "
                            : "no server lists a tool ";
    std::string reason = who + shown_name(tool) + after(suggestion(tool, tools));
    if (!effect.empty()) reason.append(reason.ends_with('?') ? " " : ". ").append(effect);
    add(file, line, key, reason);
  }

  static std::string after(const std::string &hint) { return hint.empty() ? "" : "; " + hint; }

  void add(const std::string &file, const std::string &line, const std::string &key,
           const std::string &reason) {
    if (found_.size() == max_unmatched_names) return;
    found_.push_back(file + (line.empty() ? "" : ":" + line) + ": " + key + ": " + reason);
  }

  const Profile &profile_;
  const Names names_;
  const std::vector<KnownTools> known_;
  std::vector<std::string> servers_, found_;
  std::string file_;        // the file of the current layer
  std::string_view lines_;  // the line of each key in file_, as a JSON object
};

}  // namespace

std::vector<std::string> unmatched_names(const Profile &profile) {
  return Search(profile).run();
}

}  // namespace bulkhead::program
