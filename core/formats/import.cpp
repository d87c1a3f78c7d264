// Converts other clients' servers to a TOML profile. Credentials in env, headers and URLs are
// replaced with references.
#include "formats/import.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "bulkhead/cpp/text.hpp"
#include "formats/clients.hpp"
#include "formats/definition_differences.hpp"
#include "formats/detected.hpp"
#include "formats/server_writer.hpp"
#include "profile/parse.hpp"
#include "profile/server.hpp"
#include "profile/toml_text.hpp"

namespace bulkhead {

namespace profiles {

namespace {

// Returns a similar name that is valid under the default naming rules.
std::string loadable_name(const std::string &name) {
  std::string out;
  for (const char c : name) {
    const bool good = bh::is_letter_or_digit(c) || c == '_' || c == '-' || c == '.';
    const char next = good ? c : '-';
    if (next == '_' && out.ends_with('_')) continue;
    if (next == '-' && !good && out.ends_with('-')) continue;
    out += next;
  }
  out = out.substr(0, 56);  // leaves room for a suffix
  while (out.ends_with('_') || out.ends_with('-')) out.pop_back();
  out.erase(0, out.find_first_not_of(".-"));
  if (out.empty()) return "server";
  return out == "builtin" ? "builtin-server" : out;
}

// Parses the tables of one server and returns its keys.
Node definition_of(const std::string &toml) {
  const std::vector<ProfileLayer> layers{{"import", "import.toml", toml}};
  Diagnostics diagnostics(layers);
  Node root;
  if (!parse_layer(layers.front(), 0, {}, &root, diagnostics) || root.members.empty()) return {};
  const Node &servers = root.members.front().value;
  return servers.members.empty() ? Node() : servers.members.front().value;
}

// Returns the keys of a server with `disabled = true` and a comment with the reason.
std::string disabled_body(std::string_view body, const std::string &why) {
  std::string out = "# " + printable(why, 400) + "\ndisabled = true\n";
  while (!body.empty() && !body.starts_with('[')) {
    const std::size_t end = std::min(body.find('\n'), body.size() - 1) + 1;
    const std::string_view line = body.substr(0, end);
    if (!line.starts_with("disabled = ") && !line.starts_with("enabled = ")) out += line;
    body.remove_prefix(end);
  }
  return out.append(body);
}

std::string joined(const std::vector<std::string> &words) {
  std::string out;
  for (const std::string &word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

class Importer {
 public:
  Importer(std::vector<std::string> *variables, const std::vector<std::string> &listens)
      : listed_(variables), listens_(listens) {}

  // `index` is the position of `config` in the list of files.
  void add(const FoundConfig &config, std::size_t index) {
    index_ = index;
    std::string where = config.client + ": " + config.file;
    for (const std::string &key : config.section) where += " > " + key;
    from_ = "# From " + printable(where, 1000) + '\n';
    out_ += '\n' + from_;
    if (!config.error.empty()) return refuse_file(config.error);
    Node root;
    std::string error;
    if (!read_client_file(config.file, &root, &error))
      return refuse_file(error.empty() ? "the file no longer exists" : error);
    const Node *table = section_of(root, config.section);
    if (table == nullptr) return refuse_file("the servers no longer exist");
    for (const Member &entry : table->members) add_server(config, entry);
  }

  std::vector<ImportedServer> take_servers() { return std::move(servers_); }
  // Returns the names of the entries for this gateway.
  std::vector<std::string> take_skipped() { return std::move(skipped_); }

  std::string take() {
    std::string head =
        "# A Bulkhead profile, created by \"bulkhead import\".\nschema = \"bulkhead.profile/1\"\n";
    if (!lines_.empty()) {
      head += "\n# Credentials are not copied. Set these variables before you start:\n";
      for (const std::string &line : lines_) head += "#   " + printable(line, 1000) + '\n';
    }
    return head + out_;
  }

 private:
  void refuse_file(const std::string &why) { out_ += "# " + printable(why, 1000) + '\n'; }

  void add_server(const FoundConfig &config, const Member &entry) {
    if (is_this_gateway(entry.value, listens_)) {
      out_ += "# left out: " + in_quotes(entry.name) + " is this gateway\n";
      if (std::find(skipped_.begin(), skipped_.end(), entry.name) == skipped_.end())
        skipped_.push_back(entry.name);
      return;
    }
    const std::string base = loadable_name(entry.name);
    std::string name = base, base_toml;
    for (int suffix = 2;; ++suffix) {
      const WrittenServer server = write_server(config, entry, name, variables_);
      const auto taken = bodies_.find(name);
      if (taken == bodies_.end()) return add(entry, {name, base, base_toml}, server);
      if (taken->second == server.body) return add_identical(entry, name);
      if (base_toml.empty()) base_toml = server.toml();
      name = base + '-' + std::to_string(suffix);
    }
  }

  void add_identical(const Member &entry, const std::string &name) {
    add_place(name, entry);
    out_ += "# " + in_quotes(entry.name) + " is identical to [mcpServers." + toml_key(name) +
            "] above\n";
  }

  // The name in the profile, the name without a suffix and, if `name` has a suffix, the server's
  // tables with the name `base`.
  struct Names {
    const std::string &name, &base, &base_toml;
  };

  // An earlier enabled server that has the same `base` and starts the same program.
  struct Twin {
    std::string name;
    std::vector<std::string> differences;
  };

  std::optional<Twin> find_twin(const std::string &base, const Node &definition) const {
    const auto [from, to] = definitions_.equal_range(base);
    for (auto at = from; at != to; ++at) {
      if (is_disabled(at->second.second)) continue;
      if (auto differences = setting_differences(at->second.second, definition))
        return Twin{at->second.first, *std::move(differences)};
    }
    return std::nullopt;
  }

  void add(const Member &entry, const Names &names, WrittenServer server) {
    const std::string &name = names.name;
    const std::string named =
        name != entry.name ? "# originally named " + in_quotes(entry.name) + "\n" : std::string();
    const std::string why = refused(server.toml(), server.url_is_reference);
    ImportedServer out;
    const std::string head = from_ + named;
    std::string text = server.toml();
    out.toml = head + text;
    if (why.empty()) {
      Node definition = definition_of(names.base_toml.empty() ? server.toml() : names.base_toml);
      if (const auto twin = find_twin(names.base, definition)) {
        if (twin->differences.empty()) return add_identical(entry, twin->name);
        out.same_as = twin->name;
        out.differences = twin->differences;
        WrittenServer disabled = server;
        disabled.body =
            disabled_body(server.body, "starts the same program as " + twin->name +
                                           " (differs in: " + joined(twin->differences) + ")");
        text = disabled.toml();
        out.disabled_toml = head + text;
      } else {
        definitions_.emplace(names.base, std::pair(name, std::move(definition)));
      }
    }
    out.name = name;
    out.base = names.base;
    out.base_toml = names.base_toml;
    out.refused = why;
    out.variables = server.variables;
    out.config = index_;
    out_ += named;
    const bool disabled = !out.disabled_toml.empty();
    servers_.push_back(std::move(out));
    if (!why.empty()) {
      out_ += "# skipped because it is invalid: " + printable(why, 400) + "\n# ";
      for (const char c : text.substr(0, text.size() - 1)) {
        out_ += c;
        if (c == '\n') out_ += "# ";
      }
      out_ += '\n';
      return;
    }
    bodies_[name] = server.body;
    add_place(name, entry);
    out_ += text + '\n';
    if (disabled) return;  // its variables are not needed until it is enabled
    for (const std::string &line : server.variables) {
      if (std::find(lines_.begin(), lines_.end(), line) != lines_.end()) continue;
      lines_.push_back(line);
      if (listed_ != nullptr) listed_->push_back(line);
    }
  }

  // Records that this client's file also contains the server, unless the entry is disabled. If
  // `same_as` of the server is set, this is recorded for the server that `same_as` names.
  void add_place(const std::string &name, const Member &entry) {
    if (is_disabled(entry.value)) return;
    std::string started = name;
    for (const ImportedServer &server : servers_)
      if (server.name == name && !server.same_as.empty()) started = server.same_as;
    for (ImportedServer &server : servers_)
      if (server.name == started && server.refused.empty())
        server.places.push_back({index_, entry.name});
  }

  // Returns the reason why the loader would reject this text even if all variables were set.
  // Returns an empty string if the loader would accept it.
  static std::string refused(const std::string &text, bool url_is_reference) {
    ProfileEnvironment environment;
    environment.getenv = [url_is_reference](const std::string &) -> std::optional<std::string> {
      return url_is_reference ? "http://localhost" : "1";
    };
    const std::vector<ProfileLayer> layers{{"import", "import.toml", text}};
    Diagnostics diagnostics(layers);
    Profile profile;
    Context context{environment, diagnostics, profile};
    Node root;
    if (parse_layer(layers.front(), 0, {}, &root, diagnostics))
      read_servers(root.members.front().value, nullptr, context);
    const std::vector<ProfileError> errors = diagnostics.take_errors();
    if (!errors.empty()) return errors.front().path + ": " + errors.front().what;
    return profile.servers.empty() ? "its name is not valid" : "";
  }

  std::vector<std::string> *listed_;
  const std::vector<std::string> &listens_;
  std::size_t index_ = 0;
  std::string out_, from_;
  std::vector<ImportedServer> servers_;
  Variables variables_;
  // The TOML text of each server, by server name. Used to detect whether two clients have the same
  // server.
  std::map<std::string, std::string> bodies_;
  // The name and the definition of each server, by the name without a suffix.
  std::multimap<std::string, std::pair<std::string, Node>> definitions_;
  std::vector<std::string> skipped_;
  std::vector<std::string> lines_;  // one for each variable that must be set
};

}  // namespace

}  // namespace profiles

std::string import_profile(const std::vector<FoundConfig> &found,
                           std::vector<std::string> *variables,
                           const std::vector<std::string> &listens) {
  profiles::Importer importer(variables, listens);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].other_project.empty()) importer.add(found[i], i);
  return importer.take();
}

std::vector<ImportedServer> import_servers(const std::vector<FoundConfig> &found,
                                           const std::vector<std::string> &listens,
                                           std::vector<std::string> *skipped) {
  profiles::Importer importer(nullptr, listens);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].other_project.empty()) importer.add(found[i], i);
  if (skipped != nullptr) *skipped = importer.take_skipped();
  return importer.take_servers();
}

}  // namespace bulkhead
