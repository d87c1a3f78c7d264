#include "profile/sections.hpp"
#include "profile/tcp_address.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

namespace bulkhead::profiles {

namespace {

constexpr std::string_view kSections[] = {
    "schema",     "gateway",        "mcpServers", "naming",    "expose",    "limits",
    "transports", "tools",          "policy",     "policies",  "telemetry", "services",
    "connectors", "plugin_dirs",    "state_dir",  "isolation", "approval",  "pins",
    "security",   "corp",           "profiles",   "default",   "id",        "revision",
    "editable",   "detect_servers",
};

constexpr std::uint64_t kDay = 86'400'000;
constexpr std::uint64_t kGiB = 1ull << 30;

constexpr LimitKey wide(std::string_view name, std::uint64_t Limits::*member, std::uint64_t least,
                        std::uint64_t most) {
  return {name, member, nullptr, least, most};
}
constexpr LimitKey narrow(std::string_view name, std::uint32_t Limits::*member, std::uint64_t least,
                          std::uint64_t most) {
  return {name, nullptr, member, least, most};
}

// docs/limits.md is the same table for people; a test compares them.
constexpr LimitKey kLimits[] = {
    wide("message_bytes", &Limits::message_bytes, 1024, kGiB),
    wide("header_bytes", &Limits::header_bytes, 1024, 1ull << 20),
    wide("sessions", &Limits::sessions, 1, 1'000'000),
    wide("session_idle_ms", &Limits::session_idle_ms, 1000, 30 * kDay),
    wide("event_buffer_bytes", &Limits::event_buffer_bytes, 0, kGiB),
    wide("write_queue_bytes", &Limits::write_queue_bytes, 1024, 4 * kGiB),
    wide("write_stall_ms", &Limits::write_stall_ms, 100, kDay),
    wide("request_read_ms", &Limits::request_read_ms, 100, kDay),
    wide("shutdown_grace_ms", &Limits::shutdown_grace_ms, 0, 600'000),
    wide("connect_timeout_ms", &Limits::connect_timeout_ms, 1, kDay),
    wide("call_timeout_ms", &Limits::call_timeout_ms, 1, kDay),
    wide("request_timeout_ms", &Limits::request_timeout_ms, 1, kDay),
    wide("timeout_ceiling_ms", &Limits::timeout_ceiling_ms, 1, kDay),
    wide("ask_timeout_ms", &Limits::ask_timeout_ms, 1, kDay),
    wide("first_list_wait_ms", &Limits::first_list_wait_ms, 0, 600'000),
    wide("grace_ms", &Limits::grace_ms, 0, 600'000),
    wide("drain_ms", &Limits::drain_ms, 0, 600'000),
    wide("retry_min_ms", &Limits::retry_min_ms, 1, kDay),
    wide("retry_max_ms", &Limits::retry_max_ms, 1, kDay),
    narrow("in_flight_per_session", &Limits::in_flight_per_session, 1, 65'536),
    narrow("queued_per_server", &Limits::queued_per_server, 0, 1'000'000),
    narrow("asks_per_session", &Limits::asks_per_session, 1, 65'536),
    narrow("subscriptions_per_session", &Limits::subscriptions_per_session, 0, 1'000'000),
    narrow("items_per_server", &Limits::items_per_server, 1, 1'000'000),
    wide("list_bytes_per_server", &Limits::list_bytes_per_server, 1024, 4 * kGiB),
    narrow("page_items", &Limits::page_items, 1, 1'000'000),
    wide("idle_view_ms", &Limits::idle_view_ms, 0, 30 * kDay),
    wide("policy_timeout_ms", &Limits::policy_timeout_ms, 1, 600'000),
    wide("policy_waiting_bytes", &Limits::policy_waiting_bytes, 1024, 4 * kGiB),
    wide("approval_timeout_ms", &Limits::approval_timeout_ms, 1000, kDay),
    narrow("approvals_waiting", &Limits::approvals_waiting, 1, 10'000),
    narrow("approvals_per_session", &Limits::approvals_per_session, 1, 10'000),
    wide("approvals_bytes", &Limits::approvals_bytes, 1024, 4 * kGiB),
    wide("plugin_init_ms", &Limits::plugin_init_ms, 1, 600'000),
    wide("stderr_bytes", &Limits::stderr_bytes, 4096, kGiB),
};

constexpr ExposeKey kExpose[] = {
    {"tools", &Expose::tools},
    {"resources", &Expose::resources},
    {"prompts", &Expose::prompts},
    {"logging", &Expose::logging},
    {"completions", &Expose::completions},
    {"list_changed", &Expose::list_changed},
    {"subscribe", &Expose::subscribe},
};

constexpr std::string_view kNamingKeys[] = {"separator",  "prefix", "scheme",    "long_names",
                                            "max_length", "names",  "bad_names", "aliases"};

bool letter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}
bool digit(char c) {
  return c >= '0' && c <= '9';
}

std::string wrong_separator(const std::string &text) {
  if (text.empty()) return "the separator must not be empty";
  if (text.size() > 8) return "the separator has more than 8 characters";
  for (const char c : text)
    if (c <= ' ' || c >= 0x7F) return "white space and characters outside ASCII are not allowed";
  return {};
}

std::string wrong_scheme(const std::string &text) {
  bool good = !text.empty() && text.size() <= 32 && letter(text[0]);
  for (const char c : text)
    good = good && (letter(c) || digit(c) || c == '+' || c == '-' || c == '.');
  if (!good) return "a URI scheme is a letter, then letters, digits, '+', '-' or '.'";
  for (const std::string_view taken : {"http", "https", "file", "ui", "data"})
    if (text == taken) return in_quotes(text) + " has a meaning of its own for clients";
  return {};
}

void read_checked(const Member &member, const std::string &path,
                  std::string (*wrong)(const std::string &), std::string *out, Context &context) {
  auto text = context.diagnostics.string(member.value, path);
  if (!text) return;
  if (std::string why = wrong(*text); !why.empty())
    context.diagnostics.error(member.value.place, path, std::move(why));
  else
    *out = std::move(*text);
}

// A word of two: true if it is `yes`. Leaves *out alone after an error.
void read_choice(const Member &member, const std::string &path, std::string_view yes,
                 std::string_view no, bool *out, Context &context) {
  const std::string_view allowed[] = {yes, no};
  if (const auto text = context.diagnostics.one_of(member.value, path, allowed))
    *out = *text == yes;
}

std::string wrong_tool_name(std::string_view name) {
  constexpr std::size_t most = 256;
  if (name.empty()) return "the name of a tool must not be empty";
  if (name.size() > most) return "the name has more than " + std::to_string(most) + " bytes";
  for (const char c : name)
    if (static_cast<unsigned char>(c) <= ' ' || c == 0x7F)
      return "white space and control characters are not allowed";
  return {};
}

void read_aliases(const Node &table, Context &context) {
  Diagnostics &diagnostics = context.diagnostics;
  const std::string path = "naming.aliases";
  if (!diagnostics.is_table(table, path)) return;
  auto &aliases = context.profile.naming.aliases;
  if (table.members.size() > Naming::max_aliases) {
    return diagnostics.error(
        table.place, path,
        "there are more than " + std::to_string(Naming::max_aliases) + " aliases");
  }
  for (const Member &member : table.members) {
    const std::string at = join(path, member.name);
    auto tool = diagnostics.string(member.value, at);
    if (!tool) continue;
    std::string why = wrong_tool_name(member.name);
    if (why.empty()) why = wrong_tool_name(*tool);
    if (why.empty() && (*tool == member.name || table.find(*tool) != nullptr))
      why = "an alias stands for a tool as it is listed, not for an alias";
    if (!why.empty())
      diagnostics.error(member.value.place, at, std::move(why));
    else
      aliases[member.name] = *std::move(tool);
  }
}

}  // namespace

std::span<const std::string_view> section_names() {
  return kSections;
}

bool known_section(std::string_view name) {
  const auto names = section_names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::span<const LimitKey> limit_keys() {
  return kLimits;
}

std::span<const ExposeKey> expose_keys() {
  return kExpose;
}

void read_naming(const Node &table, Context &context) {
  Naming &naming = context.profile.naming;
  if (!context.diagnostics.is_table(table, "naming")) return;
  for (const Member &member : table.members) {
    const std::string path = join("naming", member.name);
    if (member.name == "separator") {
      read_checked(member, path, wrong_separator, &naming.separator, context);
    } else if (member.name == "prefix") {
      read_choice(member, path, "always", "never", &naming.prefix, context);
    } else if (member.name == "scheme") {
      read_checked(member, path, wrong_scheme, &naming.scheme, context);
    } else if (member.name == "long_names") {
      read_choice(member, path, "shorten", "error", &naming.shorten, context);
    } else if (member.name == "max_length") {
      if (const auto value = context.diagnostics.integer(member.value, path, 24, 256))
        naming.max_length = static_cast<std::uint32_t>(*value);
    } else if (member.name == "names") {
      read_choice(member, path, "strict", "any", &naming.strict_names, context);
    } else if (member.name == "bad_names") {
      read_choice(member, path, "error", "skip", &naming.bad_names_error, context);
    } else if (member.name == "aliases") {
      read_aliases(member.value, context);
    } else {
      context.diagnostics.unknown_key(member, "naming", kNamingKeys);
    }
  }
}

void read_expose(const Node &table, Context &context) {
  if (!context.diagnostics.is_table(table, "expose")) return;
  std::array<std::string_view, std::size(kExpose)> names;
  std::transform(std::begin(kExpose), std::end(kExpose), names.begin(),
                 [](const ExposeKey &key) { return key.name; });
  for (const Member &member : table.members) {
    const auto key = std::find(names.begin(), names.end(), member.name);
    if (key == names.end()) {
      context.diagnostics.unknown_key(member, "expose", names);
      continue;
    }
    if (const auto on = context.diagnostics.boolean(member.value, join("expose", member.name)))
      context.profile.expose.*kExpose[key - names.begin()].flag = *on;
  }
}

void read_limits(const Node &table, Context &context) {
  Diagnostics &diagnostics = context.diagnostics;
  Limits &limits = context.profile.limits;
  if (!diagnostics.is_table(table, "limits")) return;
  std::array<std::string_view, std::size(kLimits)> names;
  std::transform(std::begin(kLimits), std::end(kLimits), names.begin(),
                 [](const LimitKey &key) { return key.name; });
  for (const Member &member : table.members) {
    const auto found = std::find(names.begin(), names.end(), member.name);
    if (found == names.end()) {
      diagnostics.unknown_key(member, "limits", names);
      continue;
    }
    const LimitKey &key = kLimits[found - names.begin()];
    const auto value =
        diagnostics.integer(member.value, join("limits", member.name), key.least, key.most);
    if (!value) continue;
    if (key.wide != nullptr)
      limits.*key.wide = *value;
    else
      limits.*key.narrow = static_cast<std::uint32_t>(*value);
  }
  if (limits.retry_min_ms > limits.retry_max_ms)
    diagnostics.error(table.place, "limits", "retry_min_ms is larger than retry_max_ms");
  if (limits.write_queue_bytes < limits.message_bytes)
    diagnostics.error(table.place, "limits",
                      "write_queue_bytes is smaller than message_bytes, so that the largest "
                      "message could never be sent");
}

void read_gateway(const Node &table, Context &context) {
  static constexpr std::string_view kKeys[] = {"name", "metrics_listen", "unknown_params"};
  static constexpr std::string_view kUnknown[] = {"forward", "drop", "refuse"};
  if (!context.diagnostics.is_table(table, "gateway")) return;
  for (const Member &member : table.members) {
    if (member.name == "unknown_params") {
      const auto what =
          context.diagnostics.one_of(member.value, "gateway.unknown_params", kUnknown);
      if (what)
        context.profile.unknown_params = *what == "drop"     ? UnknownParams::drop
                                         : *what == "refuse" ? UnknownParams::refuse
                                                             : UnknownParams::forward;
      continue;
    }
    if (member.name != "name" && member.name != "metrics_listen") {
      context.diagnostics.unknown_key(member, "gateway", kKeys);
      continue;
    }
    const std::string path = join("gateway", member.name);
    auto text = context.diagnostics.string(member.value, path);
    if (!text) continue;
    const bool is_name = member.name == "name";
    if (is_name && (text->empty() || text->size() > 128)) {
      context.diagnostics.error(member.value.place, path, "1 to 128 bytes are needed");
    } else if (!is_name && !text->empty() && !tcp_sockaddr(*text)) {
      context.diagnostics.error(
          member.value.place, path,
          "an IP address and a port are needed, e.g. 127.0.0.1:9464 or [::1]:9464");
    } else {
      (is_name ? context.profile.server_name : context.profile.metrics_listen) = std::move(*text);
    }
  }
}

void read_connectors(const Node &table, Context &context) {
  if (!context.diagnostics.is_table(table, "connectors")) return;
  for (const Member &member : table.members) {
    const std::string path = join("connectors", member.name);
    auto plugin = context.diagnostics.string(member.value, path);
    if (!plugin) continue;
    if (plugin->empty() || member.name.empty()) {
      context.diagnostics.error(member.value.place, path,
                                "a server type and the name or path of a plugin are needed");
      continue;
    }
    const bool is_path = plugin->find('/') != std::string::npos;
    context.profile.connectors[member.name] =
        is_path ? resolve_path(*plugin, member.value.place, context) : std::move(*plugin);
  }
}

void read_plugin_dirs(const Node &array, Context &context) {
  const auto dirs = context.diagnostics.strings(array, "plugin_dirs");
  if (!dirs) return;
  context.profile.plugin_dirs.clear();
  for (std::size_t i = 0; i < dirs->size(); ++i) {
    // Not all need be of one layer.
    const std::string &dir = (*dirs)[i];
    const Place &place = array.items[i].place;
    if (dir.empty())
      context.diagnostics.error(place, "plugin_dirs", "an empty path is not allowed");
    else
      context.profile.plugin_dirs.push_back(resolve_path(dir, place, context));
  }
}

void read_state_dir(const Node &text, Context &context) {
  const auto dir = context.diagnostics.string(text, "state_dir");
  if (!dir) return;
  if (dir->empty())
    context.diagnostics.error(text.place, "state_dir", "an empty path is not allowed");
  else
    context.profile.state_dir = resolve_path(*dir, text.place, context);
}

void read_isolation(const Node &table, Context &context) {
  static constexpr std::string_view kKeys[] = {"mode"};
  if (!context.diagnostics.is_table(table, "isolation")) return;
  for (const Member &member : table.members) {
    if (member.name == "mode")
      read_choice(member, "isolation.mode", "require", "best-effort",
                  &context.profile.isolation.require, context);
    else
      context.diagnostics.unknown_key(member, "isolation", kKeys);
  }
}

void read_approval(const Node &table, Context &context) {
  static constexpr std::string_view kKeys[] = {"elicitation", "api"};
  if (!context.diagnostics.is_table(table, "approval")) return;
  for (const Member &member : table.members) {
    Approvers &approval = context.profile.approval;
    bool *flag = member.name == "elicitation" ? &approval.elicitation
                 : member.name == "api"       ? &approval.api
                                              : nullptr;
    if (flag == nullptr) {
      context.diagnostics.unknown_key(member, "approval", kKeys);
      continue;
    }
    if (const auto on = context.diagnostics.boolean(member.value, join("approval", member.name)))
      *flag = *on;
  }
}

void read_pins(const Node &table, Context &context) {
  static constexpr std::string_view kKeys[] = {"mode", "new_tools"};
  static constexpr std::string_view kModes[] = {"off", "watch", "enforce"};
  if (!context.diagnostics.is_table(table, "pins")) return;
  for (const Member &member : table.members) {
    if (member.name == "mode") {
      const auto mode = context.diagnostics.one_of(member.value, "pins.mode", kModes);
      if (!mode) continue;
      context.profile.pins.mode = *mode == "off"     ? PinRules::Mode::off
                                  : *mode == "watch" ? PinRules::Mode::watch
                                                     : PinRules::Mode::enforce;
    } else if (member.name == "new_tools") {
      read_choice(member, "pins.new_tools", "accept", "hold", &context.profile.pins.accept_new,
                  context);
    } else {
      context.diagnostics.unknown_key(member, "pins", kKeys);
    }
  }
}

std::string resolve_path(const std::string &path, const Place &place, const Context &context) {
  if (path.starts_with("~/")) return context.environment.home + path.substr(1);
  if (path.starts_with('/')) return path;
  const std::string file = context.diagnostics.origin(place).file;
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  if (folder.empty()) return path;
  return (folder / path).lexically_normal().string();
}

std::string refused_name(std::string_view name, const Naming &naming, bool builtin_too) {
  if (name.empty()) return "its name is empty";
  if (name.size() > 64) return "its name has more than 64 characters";
  for (const char c : name)
    if (!letter(c) && !digit(c) && c != '_' && c != '-' && c != '.')
      return "its name may have letters, digits, '_', '-' and '.' only";
  // A name is a folder of the cache, and a word of command lines.
  if (name[0] == '.' || name[0] == '-') return "its name may not begin with '.' or '-'";
  if (name == "builtin" && !builtin_too) return "the name \"builtin\" is reserved";
  if (naming.prefix) {
    const std::size_t at = (std::string(name) + naming.separator).find(naming.separator);
    if (at + naming.separator.size() <= name.size())
      return "its name contains the separator " + in_quotes(naming.separator);
    if (at < name.size())
      return "its name ends with the beginning of the separator " + in_quotes(naming.separator);
  }
  if (!naming.strict_names) return {};
  bool good = name[0] >= 'a' && name[0] <= 'z';
  for (const char c : name) good = good && ((c >= 'a' && c <= 'z') || digit(c) || c == '-');
  if (!good) return "strict names are a small letter, then small letters, digits and '-'";
  for (const std::string_view taken : {"fs-read", "fs-write", "fetch", "mcp"})
    if (name == taken) return "the name " + in_quotes(name) + " is reserved (strict names)";
  return {};
}

}  // namespace bulkhead::profiles
