#include "explain.hpp"

#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <optional>

namespace bulkhead::lists {
namespace {

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

// The text member `key`, or `usual` if it is absent; nullopt: the member is not a string.
std::optional<std::string> text_of(const rapidjson::Value &json, const char *key,
                                   std::string_view usual) {
  const auto at = json.FindMember(key);
  if (at == json.MemberEnd()) return std::string(usual);
  if (!at->value.IsString()) return std::nullopt;
  return std::string(at->value.GetString(), at->value.GetStringLength());
}

void put(Writer &writer, const char *key, std::string_view text) {
  writer.Key(key);
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void put_answer(Writer &writer, const char *key, const Decision &decision) {
  const bool block = decision.permission == Permission::block;
  const bool warn = decision.permission == Permission::warn;
  writer.Key(key);
  writer.StartObject();
  put(writer, "decision", block ? "block" : "allow");
  put(writer, "rule", decision.rule);
  put(writer, "reason", "");
  writer.Key("warned");
  writer.Bool(warn);
  writer.Key("rules");
  writer.StartArray();
  if (!decision.rule.empty()) {
    writer.StartObject();
    put(writer, "rule", decision.rule);
    put(writer, "place", "");
    put(writer, "decision", block ? "block" : warn ? "warn" : "allow");
    put(writer, "found", "matches");
    writer.EndObject();
  }
  writer.EndArray();
  writer.EndObject();
}

}  // namespace

std::expected<std::string, std::string> explain(const Lists &lists, std::string_view call) {
  rapidjson::Document json;
  json.Parse<rapidjson::kParseIterativeFlag>(call.data(), call.size());
  if (json.HasParseError() || !json.IsObject())
    return std::unexpected("the call must be a JSON object");
  const auto server = text_of(json, "server", ""), name = text_of(json, "name", "");
  const auto method = text_of(json, "method", "tools/call"),
             on = text_of(json, "on", "mcp.request");
  if (!server || !name || !method || !on) {
    return std::unexpected("\"server\", \"name\", \"method\" and \"on\" must be strings");
  }
  if (server->empty()) return std::unexpected("\"server\" is missing");
  const bool judged = *on == "mcp.request";  // other events are not evaluated
  rapidjson::StringBuffer out;
  Writer writer(out);
  writer.StartObject();
  put_answer(writer, "request",
             judged ? lists.decide(*server, *method == "tools/call" ? *name : "") : Decision{});
  if (json.HasMember("result")) put_answer(writer, "response", {});
  writer.EndObject();
  return std::string(out.GetString(), out.GetSize());
}

}  // namespace bulkhead::lists
