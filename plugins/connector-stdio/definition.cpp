#include "connector-stdio/definition.hpp"

#include <rapidjson/document.h>
#include <sys/stat.h>
#include <unistd.h>
#include <bulkhead/cpp/basics.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

namespace connector_stdio {
namespace {

constexpr std::array base_environment{"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "USER"};
constexpr std::string_view default_path = "/usr/local/bin:/usr/bin:/bin";

// Numbers are kept as strings, so RapidJSON scans them but does not convert them, and an unquoted
// number ("PORT": 8080) reaches the server exactly as it was written.
constexpr unsigned parse_flags = rapidjson::kParseIterativeFlag |
                                 rapidjson::kParseValidateEncodingFlag |
                                 rapidjson::kParseNumbersAsStringsFlag;

using Value = rapidjson::Value;

std::string_view text_of(const Value &v) {
  return {v.GetString(), v.GetStringLength()};
}

bh_status invalid(std::string_view server, std::string_view what, bh_error *error) {
  return bh::fail(error, BH_E_INVALID,
                  "the definition of server \"" + std::string(server) + "\": " + std::string(what));
}

// Returns true for a string without NUL bytes. System calls do not accept strings that contain NUL
// bytes.
bool is_os_text(const Value &v) {
  return v.IsString() && text_of(v).find('\0') == std::string_view::npos;
}

bool read_text(const Value &root, const char *name, std::string *out) {
  const auto it = root.FindMember(name);
  if (it == root.MemberEnd() || it->value.IsNull()) return true;
  if (!is_os_text(it->value)) return false;
  *out = text_of(it->value);
  return true;
}

bool read_args(const Value &root, std::vector<std::string> *out) {
  const auto it = root.FindMember("args");
  if (it == root.MemberEnd() || it->value.IsNull()) return true;
  if (!it->value.IsArray()) return false;
  for (const Value &arg : it->value.GetArray()) {
    if (!is_os_text(arg)) return false;
    out->emplace_back(text_of(arg));
  }
  return true;
}

constexpr std::size_t hidden_bytes_min = 3;  // shorter values also occur in ordinary words

bool tells_of_credentials(std::string_view name) {
  std::string upper(name);
  for (char &c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
  for (const char *part : {"KEY", "TOKEN", "SECRET", "PASS", "AUTH", "CRED"}) {
    if (upper.find(part) != std::string::npos) return true;
  }
  return false;
}

constexpr std::size_t long_bytes_min = 8;

// Returns true if a value must be masked in error messages and in the server's log. This applies to
// long values and to values of variables whose names indicate credentials.
bool is_hidden(std::string_view name, std::string_view value) {
  return value.size() >= long_bytes_min ||
         (value.size() >= hidden_bytes_min && tells_of_credentials(name));
}

void hide(Definition *out, std::string_view value) {
  if (value.size() >= hidden_bytes_min) out->hidden.emplace_back(value);
}

void hide_password_of_url(Definition *out, std::string_view text) {
  const std::size_t scheme = text.find("://");
  if (scheme == text.npos) return;
  const std::size_t end = std::min(text.find('/', scheme + 3), text.size());
  const std::size_t at = text.substr(0, end).rfind('@');
  const std::size_t colon = text.find(':', scheme + 3);
  if (at != text.npos && colon < at) hide(out, text.substr(colon + 1, at - colon - 1));
}

// Masks the parts of a value that a server may print separately: the token after "Bearer", the
// password in a URL or a connection string ("Server=x;Password=y"), and each line of a key.
void hide_parts(Definition *out, std::string_view value) {
  hide_password_of_url(out, value);
  const std::size_t blank = value.find(' ');
  const bool scheme = blank != value.npos && blank <= 10 && value.rfind(' ') == blank;
  if (scheme && value.size() - blank > long_bytes_min) hide(out, value.substr(blank + 1));
  for (const char between : {';', '\n'}) {
    if (value.find(between) == value.npos) continue;
    for (std::string_view rest = value; !rest.empty();) {
      const std::string_view part = rest.substr(0, rest.find(between));
      const std::size_t is = part.find('=');
      const bool named = is != part.npos && tells_of_credentials(part.substr(0, is));
      if (named) hide(out, part.substr(is + 1));
      if (between == '\n' && part.size() >= 16) hide(out, part);
      rest.remove_prefix(std::min(part.size() + 1, rest.size()));
    }
  }
}

// Masks only passwords in URLs and values that follow the name of a credential ("--token X",
// "--token=X", "Authorization: Bearer X"). Most other long arguments are paths, which must stay
// readable in error messages.
void hide_credentials_of_args(Definition *out) {
  bool named = false;  // true after an option such as "--token"
  for (const std::string &arg : out->args) {
    const std::string_view text = arg;
    const std::size_t sign = text.find_first_of("=:");
    if (named && !text.starts_with('-')) hide(out, text);
    named = text.starts_with('-') && sign == text.npos && tells_of_credentials(text);
    if (sign != text.npos && tells_of_credentials(text.substr(0, sign))) {
      const std::size_t from = std::min(text.find_first_not_of(' ', sign + 1), text.size());
      hide(out, text.substr(from));
      const std::size_t blank = text.rfind(' ');
      if (blank != text.npos && blank > from) hide(out, text.substr(blank + 1));
    }
    hide_password_of_url(out, text);
  }
}

// Returns true if `name` is a base variable (such as HOME) and has the same value in the gateway's
// environment.
bool is_base_value(std::string_view name, const std::string &value) {
  const auto known = std::find(base_environment.begin(), base_environment.end(), name);
  const char *found = known == base_environment.end() ? nullptr : std::getenv(*known);
  return found != nullptr && value == found;
}

void set_env(std::vector<std::string> *env, std::string_view name, std::string_view value) {
  std::string entry = std::string(name) + "=";
  const std::size_t prefix = entry.size();
  entry += value;
  for (std::string &e : *env) {
    if (e.compare(0, prefix, entry, 0, prefix) != 0) continue;
    e = std::move(entry);
    return;
  }
  env->push_back(std::move(entry));
}

bool read_env(const Value &root, Definition *out) {
  const auto it = root.FindMember("env");
  if (it == root.MemberEnd() || it->value.IsNull()) return true;
  if (!it->value.IsObject()) return false;
  for (const auto &member : it->value.GetObject()) {
    const std::string_view name = text_of(member.name);
    if (name.empty() || name.find('=') != std::string_view::npos) return false;
    if (name.find('\0') != std::string_view::npos || !is_os_text(member.value)) return false;
    const std::string_view value = text_of(member.value);
    set_env(&out->env, name, value);
    if (is_base_value(name, std::string(value))) continue;
    if (is_hidden(name, value)) out->hidden.emplace_back(value);
    hide_parts(out, value);
  }
  return true;
}

void read_base_environment(Definition *out) {
  for (const char *name : base_environment) {
    const char *value = std::getenv(name);
    // A value that begins with "()" is a shell function exported by bash. It is not passed on,
    // because it contains code.
    if (value == nullptr || std::string_view(value).starts_with("()")) continue;
    set_env(&out->env, name, value);
  }
}

bool read_stderr_bytes(const Value &root, std::uint64_t *out) {
  const auto it = root.FindMember("stderr_bytes");
  if (it == root.MemberEnd() || it->value.IsNull()) return true;
  if (!it->value.IsString()) return false;
  const std::string_view digits = text_of(it->value);
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), *out);
  return problem == std::errc() && end == digits.data() + digits.size();
}

bool is_program(const std::string &path, bool *seen) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return false;
  *seen = true;
  return ::access(path.c_str(), X_OK) == 0;
}

std::string_view path_of(const Definition &definition) {
  for (const std::string &e : definition.env) {
    if (e.starts_with("PATH=")) return std::string_view(e).substr(5);
  }
  return default_path;
}

}  // namespace

bh_status parse_definition(std::string_view server, std::string_view json, Definition *out,
                           bh_error *error) {
  rapidjson::Document root;
  root.Parse<parse_flags>(json.data(), json.size());
  if (root.HasParseError() || !root.IsObject()) return invalid(server, "not a JSON object", error);
  out->server = server;
  if (!read_text(root, "command", &out->command) || out->command.empty()) {
    return invalid(server, "\"command\" must be a non-empty string", error);
  }
  if (!read_args(root, &out->args))
    return invalid(server, "\"args\" must be an array of strings", error);
  read_base_environment(out);
  if (!read_env(root, out)) {
    return invalid(server, "\"env\" must be an object that maps variable names to strings", error);
  }
  if (!read_text(root, "cwd", &out->cwd)) return invalid(server, "\"cwd\" must be a string", error);
  if (!read_text(root, "stderr_file", &out->stderr_file)) {
    return invalid(server, "\"stderr_file\" must be a string", error);
  }
  if (!read_stderr_bytes(root, &out->stderr_bytes)) {
    return invalid(server, "\"stderr_bytes\" must be a whole number", error);
  }
  hide_credentials_of_args(out);
  return BH_OK;
}

bh_status find_program(const Definition &definition, std::string *out, bh_error *error) {
  if (definition.command.find('/') != std::string::npos) {
    *out = definition.command;
    return BH_OK;
  }
  bool seen = false;
  std::string_view rest = path_of(definition);
  while (!rest.empty()) {
    const std::size_t colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    rest.remove_prefix(colon == std::string_view::npos ? rest.size() : colon + 1);
    // Skips empty entries, which stand for the working directory, and relative entries. Another
    // user might be able to create a program there.
    if (!folder.starts_with('/')) continue;
    *out = std::string(folder) + "/" + definition.command;
    if (is_program(*out, &seen)) return BH_OK;
  }
  const std::string who =
      "command \"" + definition.command + "\" of server \"" + definition.server + "\" ";
  return seen ? bh::fail(error, BH_E_DENIED, who + "is on PATH, but not executable")
              : bh::fail(error, BH_E_NOT_FOUND, who + "was not found on PATH");
}

}  // namespace connector_stdio
