#include "explain.hpp"

#include <bulkhead/cpp/json_writer.hpp>
#include <bulkhead/cpp/policy.hpp>

#include <rapidjson/document.h>

#include <optional>

namespace bulkhead::lists {
namespace {

using bh::json::Writer;

// Returns the string member `key`, or `usual` if it is missing. Returns nullopt if the member is
// not a string.
std::optional<std::string> text_of(const rapidjson::Value &json, const char *key,
                                   std::string_view usual) {
  const auto at = json.FindMember(key);
  if (at == json.MemberEnd()) return std::string(usual);
  if (!at->value.IsString()) return std::nullopt;
  return std::string(at->value.GetString(), at->value.GetStringLength());
}

void put_answer(Writer &writer, const char *key, const Decision &decision) {
  const bool block = decision.permission == Permission::block;
  const bool warn = decision.permission == Permission::warn;
  writer.key(key).begin_object();
  writer.member("decision", block ? "block" : "allow");
  writer.member("rule", decision.rule);
  writer.member("reason", "");
  writer.member("warned", warn);
  writer.key("rules").begin_array();
  if (!decision.rule.empty()) {
    writer.begin_object();
    writer.member("rule", decision.rule);
    writer.member("place", "");
    writer.member("decision", block ? "block" : warn ? "warn" : "allow");
    writer.member("found", "matches");
    writer.end_object();
  }
  writer.end_array();
  writer.end_object();
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
  // The lists apply to requests only.
  const bool judged = *on == "mcp.request" && !bh::is_undecided(*method);
  const bool of_tool = *method == "tools/call" || *method == "tasks/update";
  std::string out;
  Writer writer(&out);
  writer.begin_object();
  put_answer(writer, "request", judged ? lists.decide(*server, of_tool ? *name : "") : Decision{});
  if (json.HasMember("result")) put_answer(writer, "response", {});
  writer.end_object();
  return out;
}

}  // namespace bulkhead::lists
