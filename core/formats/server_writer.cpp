#include "formats/server_writer.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "bulkhead/cpp/text.hpp"
#include "profile/parse.hpp"
#include "profile/secrets.hpp"
#include "profile/server.hpp"
#include "profile/toml_text.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kInput = "${input:";

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

  // Converts the server's keys. take() returns the result.
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

  WrittenServer take() {
    const std::string table = "mcpServers." + toml_key(name_);
    std::string body = comments_ + keys_;
    if (!env_.empty()) body += '[' + table + ".env]\n" + env_;
    if (!headers_.empty()) body += '[' + table + ".headers]\n" + headers_;
    return {table, std::move(body), std::move(listed_), url_.starts_with("${")};
  }

 private:
  void comment(const std::string &text) { comments_ += "# " + printable(text, 400) + '\n'; }

  struct KeyWriter {
    std::string_view key;
    // Returns false if write_plain() must write the key.
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
  // never do, so identical servers would otherwise look different.
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
    std::vector<std::string> texts{copy.text};
    for (const Node &item : copy.items) texts.push_back(item.text);
    const bool args = key == "args";
    if (args) {
      warn_about_args(copy);
      name_inputs(texts);
    }
    if (std::any_of(texts.begin(), texts.end(), args ? refers_except_inputs : refers))
      comment("references in " + std::string(key) + " are passed unchanged" +
              explained(texts, !args));
    if (const std::string text = toml_value(copy); !text.empty())
      keys_ += std::string(key) + " = " + text + '\n';
  }

  static bool refers(const std::string &text) { return text.find("${") != std::string::npos; }
  static bool refers_except_inputs(const std::string &text) {
    for (std::size_t at = text.find("${"); at != std::string::npos; at = text.find("${", at + 2))
      if (text.compare(at, kInput.size(), kInput) != 0) return true;
    return false;
  }

  // Names the variable for each "${input:ID}" in the arguments. The gateway replaces these
  // references when it reads the profile.
  void name_inputs(const std::vector<std::string> &texts) {
    std::set<std::string> named;
    for (const std::string &text : texts) {
      for (std::size_t at = text.find(kInput); at != std::string::npos;
           at = text.find(kInput, at + kInput.size())) {
        const std::size_t end = text.find('}', at);
        if (end == std::string::npos) break;
        const std::string id = text.substr(at + kInput.size(), end - at - kInput.size());
        if (!named.insert(id).second) continue;
        const std::string name = variable_for(name_, id);
        comment("set " + name + " to the value of ${input:" + id + "}");
        list(name);
      }
    }
  }

  // Returns the end of a comment that explains how to replace an editor's variables. Returns an
  // empty string if there are none.
  static std::string explained(const std::vector<std::string> &texts, bool inputs) {
    const auto has = [&](std::string_view name) {
      return std::any_of(texts.begin(), texts.end(), [&](const std::string &text) {
        return text.find(name) != std::string::npos;
      });
    };
    if (inputs && has(kInput))
      return ": replace ${input:...} with the value that VS Code prompts for";
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
    for (std::size_t at = text.find(kInput); at != std::string::npos; at = text.find(kInput, at)) {
      const std::size_t end = text.find('}', at);
      if (end == std::string::npos) break;
      const std::string id = text.substr(at + kInput.size(), end - at - kInput.size());
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

  // In a path or query, replaces the parts that look like credentials with references to variables.
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

}  // namespace

WrittenServer write_server(const FoundConfig &config, const Member &entry, const std::string &name,
                           Variables &variables) {
  ServerWriter writer(config, entry, name, variables);
  writer.write();
  return writer.take();
}

}  // namespace bulkhead::profiles
