// Converts other clients' servers to a TOML profile without credentials.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "bulkhead/cpp/text.hpp"
#include "formats/clients.hpp"
#include "formats/detected.hpp"
#include "formats/import.hpp"
#include "profile/parse.hpp"
#include "profile/secrets.hpp"
#include "profile/server.hpp"
#include "profile/toml_text.hpp"

namespace bulkhead {

namespace profiles {

namespace {

// Chooses a unique variable name for each credential: SERVER_KEY, or just KEY if KEY already starts
// with SERVER_. Duplicates get a numeric suffix.
class Variables {
 public:
  std::string name(const std::string &server, const std::string &key) {
    const auto found = names_.find({server, key});
    if (found != names_.end()) return found->second;
    const std::string base = variable_for(server, key);
    std::string out = base;
    for (int i = 2; !taken_.insert(out).second; ++i) out = base + '_' + std::to_string(i);
    names_[{server, key}] = out;
    return out;
  }

 private:
  std::map<std::pair<std::string, std::string>, std::string> names_;
  std::set<std::string> taken_;
};

// Returns the scheme of an Authorization value, including the space after it, or an empty view.
std::string_view auth_scheme(std::string_view value) {
  for (const std::string_view scheme : {"Bearer ", "bearer ", "Basic ", "Token ", "token "})
    if (value.starts_with(scheme)) return scheme;
  return {};
}

// Returns true if the value consists only of references without defaults, after an optional
// authorization scheme.
bool only_references(std::string_view value) {
  value.remove_prefix(auth_scheme(value).size());
  while (value.starts_with("${")) {
    const std::size_t end = value.find('}');
    if (end == std::string_view::npos || value.substr(0, end).find(":-") != std::string_view::npos)
      return false;
    value.remove_prefix(end + 1);
  }
  return value.empty();
}

void replace_all(std::string &text, std::string_view from, const std::string &to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    text.replace(at, from.size(), to);
    at += to.size();
  }
}

// Converts one server to TOML.
class ServerWriter {
 public:
  ServerWriter(const FoundConfig &config, const Member &entry, std::string name,
               Variables &variables)
      : config_(config), entry_(entry), name_(std::move(name)), variables_(variables) {}

  // Converts the server's keys. Comments and the [table] line are not included.
  void write() {
    const Node *command = entry_.value.find("command");
    if (config_.client == "Zed" && command != nullptr && command->kind == Kind::table) {
      // Zed's old format: command = {path, args, env}.
      for (const Member &member : command->members) {
        Member key = member;
        if (key.name == "path") key.name = "command";
        write_key(key);
      }
    }
    for (const Member &member : entry_.value.members)
      if (&member.value != command || command->kind != Kind::table) write_key(member);
    if (config_.client == "Gemini CLI" && entry_.value.find("url") != nullptr &&
        entry_.value.find("type") == nullptr)
      keys_ += "type = \"sse\"\n";  // in Gemini CLI, "url" without a type means SSE
    if (needs_folder()) keys_ += "cwd = " + toml_string(config_.folder) + '\n';
  }

  std::string body() const {
    std::string out = comments_ + keys_;
    if (!env_.empty()) out += '[' + table() + ".env]\n" + env_;
    if (!headers_.empty()) out += '[' + table() + ".headers]\n" + headers_;
    return out;
  }
  std::string toml() const { return '[' + table() + "]\n" + body(); }
  std::string table() const { return "mcpServers." + toml_key(name_); }
  const std::vector<std::string> &variables() const { return listed_; }
  // Returns true if the URL is a reference. In that case, the server can be validated only if the
  // referenced variables contain a URL.
  bool url_is_reference() const { return url_.starts_with("${"); }

 private:
  void comment(const std::string &text) { comments_ += "# " + printable(text, 400) + '\n'; }

  struct KeyWriter {
    std::string_view key;
    // Returns false if the key must be copied unchanged.
    bool (ServerWriter::*write)(const Node &value);
  };

  void write_key(const Member &member) {
    static constexpr KeyWriter kWriters[] = {
        {"envFile", &ServerWriter::note_env_file},
        {"env", &ServerWriter::write_env},
        {"headers", &ServerWriter::write_headers},
        {"url", &ServerWriter::write_url},
        {"bearerToken", &ServerWriter::write_bearer},
        {"bearer_token_env_var", &ServerWriter::list_bearer},
        {"type", &ServerWriter::drop_type},
    };
    const std::string_view key = server_key(member.name);
    if (config_.client == "Codex" && write_codex_key(member)) return;
    if (config_.client == "Cline" && key == "timeout" && write_cline_timeout(member.value)) return;
    if (config_.client == "Zed" && (member.name == "source" || member.name == "settings")) return;
    if (key.empty()) {
      if (!ignored_server_key(member.name) || member.name == "auth" || member.name == "oauth")
        comment("not copied: " + in_quotes(member.name));
      return;
    }
    for (const KeyWriter &writer : kWriters)
      if (writer.key == key && (this->*writer.write)(member.value)) return;
    write_plain(key, member.value);
  }

  // Cline's time-outs are in seconds.
  bool write_cline_timeout(const Node &value) {
    constexpr std::size_t most_digits = 7;
    const bool whole = value.kind == Kind::number && value.text.size() <= most_digits &&
                       value.text.find_first_not_of("0123456789") == std::string::npos;
    if (whole) keys_ += "timeout = " + value.text + "000\n";
    return whole;
  }

  // Returns true if the server must start in its project's folder, because its command line has a
  // relative path. Servers that are packages start in an empty folder, so that files of a
  // repository cannot change them.
  bool needs_folder() const {
    if (config_.folder.empty() || entry_.value.find("cwd") != nullptr) return false;
    const Node *command = entry_.value.find("command"), *args = entry_.value.find("args");
    const auto is_relative = [this](const Node &word) {
      const std::string_view text = word.text;
      if (word.kind != Kind::string || text.find('/') == text.npos || text.starts_with('/'))
        return false;
      if (text.starts_with("./") || text.starts_with("../")) return true;
      std::error_code ignored;
      return std::filesystem::exists(config_.folder + '/' + word.text, ignored);
    };
    return (command != nullptr && is_relative(*command)) ||
           (args != nullptr && std::any_of(args->items.begin(), args->items.end(), is_relative));
  }

  // Translates Codex keys for variables: env_vars lists the variables that Codex passes to the
  // server if they are set, and env_http_headers contains the names of variables whose values
  // become headers.
  bool write_codex_key(const Member &member) {
    if (member.name == "env_vars" && member.value.kind == Kind::array) {
      for (const Node &item : member.value.items)
        env_ += toml_key(item.text) + " = " + toml_string("${env:" + item.text + ":-}") + '\n';
      return true;
    }
    if (member.name != "env_http_headers" || member.value.kind != Kind::table) return false;
    for (const Member &header : member.value.members) {
      Member reference = header;
      reference.value.text = "${env:" + header.value.text + "}";
      write_header(reference);
    }
    return true;
  }

  bool note_env_file(const Node &) {
    comment("its env file is not read; put its variables in env");
    return true;
  }

  bool write_env(const Node &value) {
    if (value.kind != Kind::table) return false;
    for (const Member &variable : value.members) write_pair(variable, &env_);
    return true;
  }

  bool write_headers(const Node &value) {
    if (value.kind != Kind::table) return false;
    for (const Member &header : value.members) write_header(header);
    return true;
  }

  bool write_url(const Node &value) {
    if (value.kind != Kind::string) return false;
    url_ = clean_url(value.text);
    keys_ += "url = " + toml_string(url_) + '\n';
    return true;
  }

  bool write_bearer(const Node &value) {
    if (value.kind != Kind::string) return false;
    keys_ += "bearerToken = " + toml_string(clean("bearerToken", value.text)) + '\n';
    return true;
  }

  bool list_bearer(const Node &value) {
    list(value.text);
    return false;
  }

  // Returns true for type = "stdio", which is dropped. Some clients always write it and others
  // never do, so identical servers would look different.
  bool drop_type(const Node &value) {
    return value.text == "stdio" && entry_.value.find("command") != nullptr;
  }

  void write_header(const Member &header) {
    if (reserved_header(header.name))
      comment("not copied: the header " + in_quotes(header.name) + ", which the gateway sets");
    else
      write_pair(header, &headers_);
  }

  void write_pair(const Member &pair, std::string *out) {
    if (pair.value.kind == Kind::null) return;  // in VS Code, null unsets a variable
    std::string text = pair.value.text;
    if (pair.value.kind == Kind::boolean) text = pair.value.flag ? "true" : "false";
    *out += toml_key(pair.name) + " = " + toml_string(clean(pair.name, text)) + '\n';
  }

  void write_plain(std::string_view key, const Node &value) {
    Node copy = value;
    if (copy.kind == Kind::string) copy.text = expand_folders(copy.text);
    for (Node &item : copy.items) item.text = expand_folders(item.text);
    if (key == "args") warn_about_args(copy);
    bool refers = copy.text.find("${") != std::string::npos;
    for (const Node &item : copy.items)
      refers = refers || item.text.find("${") != std::string::npos;
    if (refers)
      comment("references in " + std::string(key) + " are passed unchanged" + explained(value));
    if (const std::string text = toml_value(copy); !text.empty())
      keys_ += std::string(key) + " = " + text + '\n';
  }

  // Returns a comment that explains why an editor variable was not replaced.
  static std::string explained(const Node &value) {
    const auto has = [&](std::string_view name) {
      return value.text.find(name) != std::string::npos ||
             std::any_of(value.items.begin(), value.items.end(), [&](const Node &item) {
               return item.text.find(name) != std::string::npos;
             });
    };
    if (has("${input:")) return ": replace ${input:...} with the value that VS Code prompts for";
    if (has("${workspaceFolder}"))
      return ": replace ${workspaceFolder} with a path (the folder that is open in VS Code)";
    return {};
  }

  void warn_about_args(const Node &args) {
    std::vector<std::string> texts;
    for (const Node &item : args.items) texts.push_back(item.text);
    if (masked_args(texts) != texts)
      comment(
          "args contain a value that looks like a credential; pass it in env if the server "
          "supports it");
  }

  // Expands VS Code's folder variable if the folder is known. For Gemini CLI, converts $NAME and
  // ${NAME} to references.
  std::string expand_folders(std::string text) const {
    if (config_.client == "Gemini CLI") text = with_references(text);
    const std::size_t folder = config_.file.rfind("/.vscode/");
    if (folder != std::string::npos)
      replace_all(text, "${workspaceFolder}", config_.file.substr(0, folder));
    return text;
  }

  static std::string with_references(const std::string &text) {
    constexpr std::string_view in_names =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
      const bool braces = text.compare(i, 2, "${") == 0;
      const std::size_t from = i + (braces ? 2 : 1);
      const std::size_t end = std::min(text.find_first_not_of(in_names, from), text.size());
      const bool digit = from < text.size() && text[from] >= '0' && text[from] <= '9';
      if (text[i] != '$' || end <= from || digit ||
          (braces && (end == text.size() || text[end] != '}'))) {
        out += text[i++];
        continue;
      }
      out += "${env:" + text.substr(from, end - from) + '}';
      i = end + (braces ? 1 : 0);
    }
    return out;
  }

  std::string variable(const std::string &key) {
    std::string out = variables_.name(name_, key);
    list(out);
    return out;
  }
  void list(const std::string &name) { listed_.push_back(name + " from " + config_.file); }
  // Lists the variables of references that have no default.
  void list_references(const std::string &text) {
    for (std::size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at + 2)) {
      const std::size_t end = text.find('}', at);
      if (end == std::string::npos) return;
      std::string name = text.substr(at + 2, end - at - 2);
      if (name.starts_with("env:")) name.erase(0, 4);
      if (!name.empty() && name.find_first_of(":$ ") == std::string::npos) list(name);
    }
  }

  // Replaces each "${input:ID}", for which the client would prompt the user, with a reference to a
  // variable.
  std::string without_inputs(std::string text) {
    static constexpr std::string_view kOpen = "${input:";
    for (std::size_t at = text.find(kOpen); at != std::string::npos; at = text.find(kOpen, at)) {
      const std::size_t end = text.find('}', at);
      if (end == std::string::npos) break;
      const std::string id = text.substr(at + kOpen.size(), end - at - kOpen.size());
      const std::string to = "${env:" + variable(id) + "}";
      text.replace(at, end + 1 - at, to);
      at += to.size();
    }
    return text;
  }

  // Returns the value of a variable or header, with credentials replaced with references.
  std::string clean(const std::string &key, const std::string &original) {
    std::string text = without_inputs(expand_folders(original));
    const bool secret = credential_name(key) || credential_value(text);
    if (!secret || text.empty() || only_references(text)) {
      list_references(text);
      return text;
    }
    const std::string scheme(auth_scheme(text));
    const std::string_view rest = std::string_view(text).substr(scheme.size());
    // "${TOKEN:-value}" already names a variable, so its default is dropped.
    const std::size_t fallback = rest.find(":-");
    if (rest.starts_with("${") && fallback != std::string_view::npos &&
        rest.find('}') == rest.size() - 1) {
      std::string name(rest.substr(2, fallback - 2));
      if (name.starts_with("env:")) name.erase(0, 4);
      list(name);
      return scheme + "${env:" + name + "}";
    }
    return scheme + "${env:" + variable(key) + "}";
  }

  std::string clean_url(const std::string &original) {
    std::string url = without_inputs(expand_folders(original));
    const std::size_t scheme = url.find("://");
    std::string out = scheme == std::string::npos ? "" : url.substr(0, scheme + 3);
    const std::size_t userinfo = out.empty() ? std::string::npos : userinfo_end(url, out.size());
    std::string rest = url.substr(userinfo == std::string::npos ? out.size() : userinfo + 1);
    rest = rest.substr(0, rest.find('#'));
    if (userinfo != std::string::npos) {
      comment(
          "its url contained user:password@; set the variable to \"Basic \" followed by the base64 "
          "of user:password");
      headers_ +=
          "Authorization = " + toml_string("${env:" + variable("Authorization") + "}") + '\n';
    }
    const std::size_t end = rest.find_first_of("/?");
    out += rest.substr(0, end);
    if (end == std::string::npos) return out;
    rest.erase(0, end);
    const std::size_t query = rest.find('?');
    out += clean_parts(rest.substr(0, query), '/', "path");
    if (query != std::string::npos) out += '?' + clean_parts(rest.substr(query + 1), '&', "query");
    return out;
  }

  // In a path or query, replaces the parts that masked_url() would mask with references to
  // variables.
  std::string clean_parts(const std::string &text, char separator, const std::string &what) {
    std::string out;
    std::map<std::string, int> used;  // how many variables have been made from each name
    std::size_t from = 0;
    while (true) {
      const std::size_t end = std::min(text.find(separator, from), text.size());
      const std::string part = text.substr(from, end - from);
      const std::size_t equals = separator == '&' ? part.find('=') : std::string::npos;
      const std::string name = equals == std::string::npos ? what : part.substr(0, equals);
      const std::string value = equals == std::string::npos ? part : part.substr(equals + 1);
      const bool secret = !value.empty() && !only_references(value) &&
                          ((equals != std::string::npos && credential_name(name)) ||
                           credential_value(value) || token_like(value));
      if (equals != std::string::npos) out += name + '=';
      if (!secret) {
        out += value;
      } else {
        const int number = ++used[name];
        out += "${env:" + variable(number == 1 ? name : name + '_' + std::to_string(number)) + '}';
      }
      if (end == text.size()) return out;
      out += separator;
      from = end + 1;
    }
  }

  const FoundConfig &config_;
  const Member &entry_;
  const std::string name_;
  Variables &variables_;
  std::string comments_, keys_, env_, headers_, url_;
  std::vector<std::string> listed_;
};

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
      return;
    }
    const std::string base = loadable_name(entry.name);
    std::string name = base, base_toml;
    for (int suffix = 2;; ++suffix) {
      ServerWriter writer(config, entry, name, variables_);
      writer.write();
      const auto taken = bodies_.find(name);
      if (taken == bodies_.end()) return write(entry, name, {base, base_toml}, writer);
      if (taken->second == writer.body()) {
        add_place(name, entry);
        out_ += "# " + in_quotes(entry.name) + " is identical to [" + writer.table() + "] above\n";
        return;
      }
      if (base_toml.empty()) base_toml = writer.toml();
      name = base + '-' + std::to_string(suffix);
    }
  }

  // The name without a suffix and, if `name` has a suffix, the server's tables with that name.
  struct Base {
    const std::string &name, &toml;
  };

  void write(const Member &entry, const std::string &name, const Base &base,
             const ServerWriter &writer) {
    const std::string text = writer.toml();
    const std::string named =
        name != entry.name ? "# originally named " + in_quotes(entry.name) + "\n" : std::string();
    const std::string why = refused(text, writer.url_is_reference());
    out_ += named;
    servers_.push_back(
        {name, base.name, from_ + named + text, base.toml, why, writer.variables(), index_, {}});
    if (!why.empty()) {
      out_ += "# skipped because it is invalid: " + printable(why, 400) + "\n# ";
      for (const char c : text.substr(0, text.size() - 1)) {
        out_ += c;
        if (c == '\n') out_ += "# ";
      }
      out_ += '\n';
      return;
    }
    bodies_[name] = writer.body();
    add_place(name, entry);
    out_ += text + '\n';
    for (const std::string &line : writer.variables()) {
      if (std::find(lines_.begin(), lines_.end(), line) != lines_.end()) continue;
      lines_.push_back(line);
      if (listed_ != nullptr) listed_->push_back(line);
    }
  }

  // Records that this client's file also contains the server, unless the entry is disabled.
  void add_place(const std::string &name, const Member &entry) {
    if (is_disabled(entry.value)) return;
    for (ImportedServer &server : servers_)
      if (server.name == name && server.refused.empty())
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
    return profile.servers.empty() ? "its name" : "";
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
                                           const std::vector<std::string> &listens) {
  profiles::Importer importer(nullptr, listens);
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i].other_project.empty()) importer.add(found[i], i);
  return importer.take_servers();
}

}  // namespace bulkhead
