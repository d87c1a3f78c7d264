#include "profile/server_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "bulkhead/cpp/text.hpp"
#include "profile/expand.hpp"
#include "profile/foreign_references.hpp"

namespace bulkhead::profiles {

namespace {

constexpr std::size_t kHeaders = 100;
constexpr std::size_t kHeaderBytes = 16 * 1024;  // maximum size of one header value

bool header_name(std::string_view name) {
  if (name.empty() || name.size() > 256) return false;
  for (const char c : name) {
    const bool good = bh::is_letter_or_digit(c) ||
                      std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    if (!good) return false;
  }
  return true;
}

bool control_character(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
  });
}

}  // namespace

ServerReader::ServerReader(const Member &entry, Context &context)
    : entry_(entry),
      context_(context),
      diagnostics_(context.diagnostics),
      path_(join("mcpServers", entry.name)) {
  server_.name = entry.name;
  server_.origin = diagnostics_.origin(entry.place);
}

void ServerReader::read() {
  const std::size_t errors = diagnostics_.count();
  if (!diagnostics_.is_table(entry_.value, path_)) return;
  collect();
  read_switches();
  read_type();
  read_keys();
  check_sandbox();
  check_roots();
  if (diagnostics_.count() != errors) return;
  note_foreign_references();
  disable_if_unmet();
  context_.profile.servers.push_back(std::move(server_));
}

const Member *ServerReader::find(std::string_view key) const {
  const auto found = members_.find(key);
  return found == members_.end() ? nullptr : found->second;
}

void ServerReader::reject(const Member &member, std::string what) {
  diagnostics_.error(member.place, at(member), std::move(what));
}

void ServerReader::collect() {
  std::string ignored;
  for (const Member &member : entry_.value.members) {
    const std::string_view key = server_key(member.name);
    if (!key.empty()) {
      const auto [old, fresh] = members_.emplace(key, &member);
      if (!fresh)
        reject(member, "duplicates " + in_quotes(old->second->name) + " on line " +
                           std::to_string(old->second->place.line) + "; use one of them");
    } else if (ignored_server_key(member.name)) {
      ignored += (ignored.empty() ? "" : ", ") + member.name;
    } else {
      diagnostics_.unknown_key(member, path_, server_keys());
    }
  }
  if (!ignored.empty())
    diagnostics_.note(entry_.place,
                      "server " + in_quotes(entry_.name) +
                          ": unsupported keys are ignored: " + printable(ignored, 400));
}

void ServerReader::read_switches() {
  const Member *disabled = find("disabled");
  const Member *enabled = find("enabled");
  std::optional<bool> off, on;
  if (disabled != nullptr) off = diagnostics_.boolean(disabled->value, at(*disabled));
  if (enabled != nullptr) on = diagnostics_.boolean(enabled->value, at(*enabled));
  if (off && on && *off == *on) reject(*enabled, "contradicts \"disabled\"; use one of them");
  server_.disabled = off.value_or(!on.value_or(true));
  if (const Member *unsupported = find("unsupported_stdio")) {
    const auto flag = diagnostics_.boolean(unsupported->value, at(*unsupported));
    if (flag.value_or(false) && !server_.disabled) {
      server_.disabled = true;
      diagnostics_.note(entry_.place, "server " + in_quotes(entry_.name) +
                                          " is disabled: it is marked unsupported_stdio");
    }
  }
}

// Reads the type. If it is not set, the presence of a command or URL determines it.
void ServerReader::read_type() {
  const Member *command = find("command");
  const Member *url = find("url");
  if (command != nullptr && url != nullptr) {
    reject(*url, "a server can have a command or a url, not both");
    return;
  }
  if (command == nullptr && url == nullptr) {
    diagnostics_.error(entry_.place, path_, "requires a \"command\" or a \"url\"");
    return;
  }
  server_.type = command != nullptr ? "stdio" : "http";
  const Member *type = find("type");
  if (type == nullptr) return;
  const auto text = diagnostics_.string(type->value, at(*type));
  if (!text) return;
  const std::string_view canonical = canonical_type(*text);
  if (canonical.empty()) {
    read_custom_type(*type, *text);
  } else if ((canonical == "stdio") != (command != nullptr)) {
    reject(*type, in_quotes(*text) + " cannot be used with " +
                      (command != nullptr ? "a command" : "a url") + "; omit the type, or " +
                      (command != nullptr ? "write \"stdio\"" : "write \"http\" or \"sse\""));
  } else {
    server_.type = canonical;
  }
}

void ServerReader::read_custom_type(const Member &type, const std::string &text) {
  const auto &connectors = context_.profile.connectors;
  if (connectors.contains(text)) {
    server_.type = text;
    custom_type_ = true;
    return;
  }
  std::string allowed = "stdio, http (also streamable-http), sse";
  for (const auto &[name, plugin] : connectors)
    if (canonical_type(name).empty()) allowed += ", " + name;
  reject(type, "unknown type " + in_quotes(text) + "; allowed: " + printable(allowed, 400));
}

void ServerReader::read_command(const Member &command) {
  auto text = diagnostics_.string(command.value, at(command));
  if (text && text->empty())
    reject(command, "the command is empty");
  else if (text)
    server_.command = std::move(*text);
}

void ServerReader::read_args(const Member &args) {
  auto list = diagnostics_.strings(args.value, at(args));
  if (list) expand_inputs(&*list);
  if (list && within_limit(args, list->size(), kServerEntries)) server_.args = std::move(*list);
}

void ServerReader::read_cwd(const Member &cwd) {
  if (auto text = diagnostics_.string(cwd.value, at(cwd))) server_.cwd = std::move(*text);
}

void ServerReader::reject_env_file(const Member &file) {
  reject(file,
         "env files are not supported; put the variables in env, or in the environment of the "
         "gateway");
}

// Expands ${input:...} in arguments. Other references in arguments are not expanded.
void ServerReader::expand_inputs(std::vector<std::string> *args) {
  if (context_.literal) return;
  for (std::string &arg : *args) {
    if (server_.disabled || arg.find("${input:") == std::string::npos) continue;
    Expanded result = expand(arg, ExpandMode::inputs, context_.environment, entry_.name);
    if (result.problems.empty())
      arg = std::move(result.text);
    else
      for (Expanded::Problem &problem : result.problems) unmet_.push_back(std::move(problem.what));
  }
}

bool ServerReader::within_limit(const Member &member, std::size_t count, std::size_t most) {
  if (count <= most) return true;
  reject(member, "more than " + std::to_string(most) + " entries");
  return false;
}

void ServerReader::read_env(const Member &env) {
  if (!diagnostics_.is_table(env.value, at(env)) ||
      !within_limit(env, env.value.members.size(), kServerEntries))
    return;
  for (const Member &variable : env.value.members) {
    const std::string path = join(at(env), variable.name);
    if (variable.name.empty() ||
        variable.name.find_first_of(std::string("=\0", 2)) != std::string::npos) {
      diagnostics_.error(variable.place, path, "not a valid environment variable name");
      continue;
    }
    const auto text = diagnostics_.string(variable.value, path);
    if (!text) continue;
    if (auto value = expanded(*text, variable.value.place, path))
      server_.env.emplace(variable.name, std::move(value->text));
  }
}

// Resolves the references in a value. If the server is disabled, the references are kept, because
// the user may have disabled the server precisely because its variables are unset.
std::optional<ServerReader::Value> ServerReader::expanded(const std::string &text,
                                                          const Place &place,
                                                          const std::string &path) {
  if (server_.disabled) return Value{text, false, true};
  if (context_.literal) return checked(Value{text, false, false}, place, path);
  Expanded result = expand(text, ExpandMode::all, context_.environment, entry_.name);
  if (result.problems.empty())
    return checked(Value{std::move(result.text), result.referred, false}, place, path);
  const bool only_unmet = std::all_of(
      result.problems.begin(), result.problems.end(), [&](const Expanded::Problem &problem) {
        return problem.asked || (problem.missing && may_be_unset(place));
      });
  if (only_unmet) {
    for (Expanded::Problem &problem : result.problems) unmet_.push_back(std::move(problem.what));
    return Value{text, true, true};
  }
  for (const Expanded::Problem &problem : result.problems)
    diagnostics_.error(place, path, "server " + in_quotes(entry_.name) + ": " + problem.what,
                       problem.missing ? kMissingVariable : kInvalidSchema);
  return std::nullopt;
}

// Returns true if an unset variable disables only this server. In the corporation's layer, an unset
// variable prevents the gateway from starting.
bool ServerReader::may_be_unset(const Place &place) const {
  if (context_.environment.use == ProfileUse::none) return true;
  return !diagnostics_.corp(place) && !diagnostics_.corp(entry_.place);
}

// Reports an invalid value. If the value comes from the environment, only this server is disabled,
// as if the variable were unset. Otherwise, the file contains an error.
void ServerReader::reject_value(const Value &value, const Place &place, const std::string &path,
                                const std::string &what) {
  if (value.referred && may_be_unset(place))
    unmet_.push_back(path.substr(path_.size() + 1) + ", set by the environment: " + what);
  else
    diagnostics_.error(place, path, what);
}

// Reports values that another client would expand.
void ServerReader::note_foreign_references() {
  if (server_.disabled) return;
  for (const ForeignReference &one : foreign_references(entry_.value)) {
    diagnostics_.note(one.place, "server " + in_quotes(entry_.name) + ": " +
                                     printable(one.path, 200) + ": " + one.what);
  }
}

// Disables the server if values from the environment are missing or invalid.
void ServerReader::disable_if_unmet() {
  if (unmet_.empty()) return;
  constexpr std::size_t named = 5;
  // Several values may refer to the same unset variable. Their messages differ only in the remedy
  // after the semicolon, so only the first one is kept.
  std::vector<std::string> reasons;
  for (std::string &what : unmet_) {
    const std::string_view cause = std::string_view(what).substr(0, what.find(';'));
    const bool known = std::any_of(reasons.begin(), reasons.end(), [&](const std::string &reason) {
      return std::string_view(reason).substr(0, reason.find(';')) == cause;
    });
    if (!known) reasons.push_back(std::move(what));
  }
  std::string why;
  for (std::size_t i = 0; i < std::min(reasons.size(), named); ++i)
    why += (i == 0 ? "" : "; ") + reasons[i];
  if (reasons.size() > named) why += "; and " + std::to_string(reasons.size() - named) + " more";
  server_.disabled = true;
  server_.unmet = true;
  server_.disabled_reason = why;
  diagnostics_.note(entry_.place, "server " + in_quotes(entry_.name) + " is disabled: " + why);
}

std::optional<ServerReader::Value> ServerReader::checked(Value value, const Place &place,
                                                         const std::string &path) {
  if (value.text.find('\0') == std::string::npos) return value;
  diagnostics_.error(place, path, "the value contains a NUL character");
  return std::nullopt;
}

void ServerReader::read_url(const Member &url) {
  const auto text = diagnostics_.string(url.value, at(url));
  if (!text) return;
  auto value = expanded(*text, url.value.place, at(url));
  if (!value) return;
  if (!value->unresolved) {
    if (const std::string why = refused_url(value->text, custom_type_); !why.empty())
      return reject_value(*value, url.value.place, at(url), why);
  }
  server_.url = std::move(value->text);
}

void ServerReader::read_headers(const Member &headers) {
  if (!diagnostics_.is_table(headers.value, at(headers))) return;
  if (!within_limit(headers, headers.value.members.size(), kHeaders)) return;
  for (const Member &header : headers.value.members) {
    const std::string path = join(at(headers), header.name);
    if (!header_name(header.name)) {
      diagnostics_.error(header.place, path, "not a valid HTTP header name");
    } else if (reserved_header(header.name)) {
      diagnostics_.error(header.place, path, "this header is reserved and cannot be configured");
    } else if (const auto text = diagnostics_.string(header.value, path)) {
      auto value = expanded(*text, header.value.place, path);
      if (value) add_header(header.name, std::move(*value), header.value.place, path);
    }
  }
}

void ServerReader::add_header(const std::string &name, Value value, const Place &place,
                              const std::string &path) {
  if (control_character(value.text)) {
    return reject_value(value, place, path,
                        "the header value contains a control character (possibly a line break)");
  }
  if (value.text.size() > kHeaderBytes) {
    return reject_value(value, place, path,
                        "the value is larger than " + std::to_string(kHeaderBytes) + " bytes");
  }
  for (const auto &[other, text] : server_.headers) {
    if (!bh::equal_ignoring_case(other, name)) continue;
    diagnostics_.error(place, path, "duplicates the header " + in_quotes(other));
    return;
  }
  server_.headers.emplace(name, std::move(value.text));
}

void ServerReader::read_bearer_token(const Member &token) {
  const auto text = diagnostics_.string(token.value, at(token));
  if (!text) return;
  if (auto value = expanded(*text, token.value.place, at(token)))
    add_bearer(token, std::move(*value));
}

void ServerReader::read_bearer_variable(const Member &variable) {
  if (find("bearerToken") != nullptr)
    return reject(variable, "duplicates \"bearerToken\"; use one of them");
  const auto text = diagnostics_.string(variable.value, at(variable));
  if (!text) return;
  if (auto value = bearer_variable(variable, *text)) add_bearer(variable, std::move(*value));
}

// Reads a variable that is specified in Codex's syntax: only the variable's name, without a
// default.
std::optional<ServerReader::Value> ServerReader::bearer_variable(const Member &token,
                                                                 const std::string &name) {
  const std::string reference = "${env:" + name + "}";
  if (server_.disabled || context_.literal) return Value{reference, true, true};
  const bool good = name.find_first_of(":}") == std::string::npos;
  Expanded result = expand(reference, ExpandMode::all, context_.environment);
  if (good && result.problems.empty()) return Value{std::move(result.text), true, false};
  const bool missing = good && result.problems.front().missing;
  std::string what = "expected the name of an environment variable";
  if (missing) {
    const bool is_set = context_.environment.getenv && context_.environment.getenv(name);
    what = "the environment variable " + printable(name) +
           (is_set ? " is not UTF-8 text" : " is not set; set it, or use bearerToken");
  }
  if (missing && may_be_unset(token.value.place)) {
    unmet_.push_back(std::move(what));
    return Value{reference, true, true};
  }
  diagnostics_.error(token.value.place, at(token), "server " + in_quotes(entry_.name) + ": " + what,
                     missing ? kMissingVariable : kInvalidSchema);
  return std::nullopt;
}

void ServerReader::add_bearer(const Member &token, Value value) {
  if (value.text.empty())
    return reject_value(value, token.value.place, at(token), "the token is empty");
  value.text.insert(0, "Bearer ");
  add_header("Authorization", std::move(value), token.value.place, at(token));
}

void ServerReader::read_allow_tools(const Member &tools) {
  auto list = diagnostics_.strings(tools.value, at(tools));
  const bool all = list && std::find(list->begin(), list->end(), "*") != list->end();
  if (list && within_limit(tools, list->size(), kServerEntries) && !all)
    server_.allow_tools = std::move(*list);
}

void ServerReader::read_timeout(const Member &timeout) {
  server_.timeout_ms = milliseconds(timeout, at(timeout));
  if (server_.timeout_ms && *server_.timeout_ms < 1000)
    diagnostics_.note(timeout.place, "server " + in_quotes(entry_.name) + ": its time-out of " +
                                         std::to_string(*server_.timeout_ms) +
                                         " ms is less than one second");
}

void ServerReader::read_timeout_seconds(const Member &seconds) {
  if (find("timeout") != nullptr) reject(seconds, "duplicates \"timeout\"; use one of them");
  server_.timeout_ms = from_seconds(seconds);
}

void ServerReader::read_connect_timeout(const Member &timeout) {
  server_.connect_timeout_ms = milliseconds(timeout, at(timeout));
}

void ServerReader::read_startup_seconds(const Member &seconds) {
  if (find("connect_timeout") != nullptr)
    reject(seconds, "duplicates \"connect_timeout\"; use one of them");
  server_.connect_timeout_ms = from_seconds(seconds);
}

void ServerReader::read_server_compartment(const Member &compartment) {
  read_compartment(compartment, at(compartment), &server_.compartment, context_);
}

void ServerReader::read_tool_timeouts(const Member &tools) {
  if (!diagnostics_.is_table(tools.value, at(tools))) return;
  if (!within_limit(tools, tools.value.members.size(), kServerEntries)) return;
  for (const Member &tool : tools.value.members)
    if (const auto value = milliseconds(tool, join(at(tools), tool.name)))
      server_.tool_timeouts_ms.emplace(tool.name, *value);
}

std::optional<std::uint64_t> ServerReader::milliseconds(const Member &member,
                                                        const std::string &path) {
  const auto value = diagnostics_.integer(member.value, path, 1, 86'400'000);
  if (!value) return std::nullopt;
  return clamped(*value, member, path);
}

// Reads a time in seconds, which may be fractional, and returns milliseconds. Codex uses this
// format.
std::optional<std::uint64_t> ServerReader::from_seconds(const Member &member) {
  double seconds = 0;
  const std::string &text = member.value.text;
  if (member.value.kind == Kind::number)
    std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (seconds >= 0.001 && seconds <= 86'400)
    return clamped(static_cast<std::uint64_t>(std::llround(seconds * 1000)), member, at(member));
  reject(member, "must be a number of seconds from 0.001 to 86400");
  return std::nullopt;
}

std::uint64_t ServerReader::clamped(std::uint64_t value, const Member &member,
                                    const std::string &path) {
  const std::uint64_t most = context_.profile.limits.timeout_ceiling_ms;
  if (value <= most) return value;
  diagnostics_.note(member.place, path + ": " + std::to_string(value) +
                                      " ms exceeds limits.timeout_ceiling_ms; " +
                                      std::to_string(most) + " ms is used");
  return most;
}

void read_server(const Member &entry, Context &context) {
  ServerReader(entry, context).read();
}

}  // namespace bulkhead::profiles
