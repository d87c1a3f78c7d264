#include "profile/profile.hpp"
#include "rapidjson/stringbuffer.h"
#include "rapidjson/writer.h"

namespace bulkhead {

namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void write_map(Writer &writer, const char *name, const std::map<std::string, std::string> &map) {
  if (map.empty()) return;
  writer.Key(name);
  writer.StartObject();
  for (const auto &[key, value] : map) {
    writer.Key(key.data(), static_cast<rapidjson::SizeType>(key.size()));
    writer.String(value);
  }
  writer.EndObject();
}

void write_text(Writer &writer, const char *name, const std::string &text) {
  if (text.empty()) return;
  writer.Key(name);
  writer.String(text);
}

}  // namespace

std::string ServerDef::to_json() const {
  rapidjson::StringBuffer buffer;
  Writer writer(buffer);
  writer.StartObject();
  write_text(writer, "type", type);
  write_text(writer, "command", command);
  if (!args.empty()) {
    writer.Key("args");
    writer.StartArray();
    for (const std::string &arg : args) writer.String(arg);
    writer.EndArray();
  }
  write_map(writer, "env", env);
  write_text(writer, "cwd", cwd);
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
