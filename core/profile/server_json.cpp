#include "profile/profile.hpp"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"

namespace bulkhead {

namespace {

using JsonWriter = rapidjson::Writer<rapidjson::StringBuffer>;

void write_map(JsonWriter &writer, const char *name,
               const std::map<std::string, std::string> &map) {
  if (map.empty()) return;
  writer.Key(name);
  writer.StartObject();
  for (const auto &[key, value] : map) {
    writer.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
    writer.String(value);
  }
  writer.EndObject();
}

void write_text(JsonWriter &writer, const char *name, const std::string &text) {
  if (text.empty()) return;
  writer.Key(name);
  writer.String(text);
}

void write_list(JsonWriter &writer, const char *name, const std::vector<std::string> &list) {
  if (list.empty()) return;
  writer.Key(name);
  writer.StartArray();
  for (const std::string &text : list) writer.String(text);
  writer.EndArray();
}

void write_sandbox(JsonWriter &writer, const SandboxRules &rules) {
  writer.Key("sandbox");
  writer.StartObject();
  write_text(writer, "mode", std::string(to_string(rules.mode)));
  write_list(writer, "read", rules.read);
  write_list(writer, "write", rules.write);
  writer.Key("network");
  writer.Bool(rules.network);
  writer.Key("memory_bytes");
  writer.Uint64(rules.memory_bytes);
  writer.Key("processes");
  writer.Uint(rules.processes);
  writer.Key("cache_bytes");
  writer.Uint64(rules.cache_bytes);
  if (rules.host_ipc) write_text(writer, "ipc", "host");
  writer.EndObject();
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
  rapidjson::StringBuffer buffer;
  JsonWriter writer(buffer);
  writer.StartObject();
  write_text(writer, "type", type);
  write_text(writer, "command", command);
  write_list(writer, "args", args);
  write_map(writer, "env", env);
  write_text(writer, "cwd", cwd);
  if (!command.empty()) write_sandbox(writer, sandbox);
  write_text(writer, "url", url);
  write_map(writer, "headers", headers);
  if (connect_timeout_ms) {
    writer.Key("connect_timeout_ms");
    writer.Uint64(*connect_timeout_ms);
  }
  for (const auto &[key, value] : extra) {
    writer.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
    writer.RawValue(value.data(), value.size(), rapidjson::kObjectType);
  }
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

}  // namespace bulkhead
