#include "bulkhead/cpp/json_writer.hpp"
#include "profile/profile.hpp"

namespace bulkhead {

namespace {

using bh::json::Writer;

// Omits the member if the value is empty.
template <class T>
void write_member(Writer &json, std::string_view name, const T &value) {
  if (!value.empty()) json.member(name, value);
}

void write_member(Writer &json, std::string_view name,
                  const std::map<std::string, std::string> &map) {
  if (map.empty()) return;
  json.key(name).begin_object();
  for (const auto &[key, value] : map) json.member(key, value);
  json.end_object();
}

void write_sandbox(Writer &json, const SandboxRules &rules) {
  json.key("sandbox").begin_object().member("mode", to_string(rules.mode));
  write_member(json, "read", rules.read);
  write_member(json, "write", rules.write);
  json.member("network", rules.network)
      .member("memory_bytes", rules.memory_bytes)
      .member("processes", rules.processes)
      .member("cache_bytes", rules.cache_bytes);
  if (rules.host_ipc) json.member("ipc", "host");
  json.end_object();
}

}  // namespace

std::string_view to_string(UnknownParams value) noexcept {
  return value == UnknownParams::drop     ? "drop"
         : value == UnknownParams::refuse ? "refuse"
                                          : "forward";
}

std::string_view to_string(SandboxMode mode) noexcept {
  switch (mode) {
    case SandboxMode::strict:
      return "strict";
    case SandboxMode::home_read_only:
      return "home-read-only";
    case SandboxMode::off:
      return "off";
  }
  return "";
}

std::string ServerDef::to_json() const {
  std::string text;
  Writer json(&text);
  json.begin_object();
  write_member(json, "type", type);
  write_member(json, "command", command);
  write_member(json, "args", args);
  write_member(json, "env", env);
  write_member(json, "cwd", cwd);
  if (!command.empty()) write_sandbox(json, sandbox);
  write_member(json, "url", url);
  write_member(json, "headers", headers);
  if (connect_timeout_ms) json.member("connect_timeout_ms", *connect_timeout_ms);
  for (const auto &[key, value] : extra) json.member(key, bh::json::Raw{value});
  json.end_object();
  return text;
}

}  // namespace bulkhead
