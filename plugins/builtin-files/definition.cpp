#include "builtin-files/definition.hpp"

#include <bulkhead/cpp/json_writer.hpp>

namespace builtin_files {
namespace {

// Repeats the title, because clients that implement older MCP revisions read it only from the
// annotations.
std::string annotations(std::string_view title, Effect effect) {
  const auto flag = [](bool b) { return std::string(b ? "true" : "false"); };
  const bool destroys = effect == Effect::changes || effect == Effect::settles;
  const bool idempotent = effect == Effect::reads || effect == Effect::settles;
  return "\"annotations\":{\"title\":" + bh::json::quoted(title) +
         ",\"readOnlyHint\":" + flag(effect == Effect::reads) +
         ",\"destructiveHint\":" + flag(destroys) + ",\"idempotentHint\":" + flag(idempotent) +
         ",\"openWorldHint\":false}";
}

std::string workspace_property(const std::vector<std::string_view> &workspaces) {
  std::string names;
  for (const std::string_view w : workspaces) {
    names += (names.empty() ? "" : ",") + bh::json::quoted(w);
  }
  return "\"workspace\":{\"type\":\"string\",\"enum\":[" + names +
         "],\"default\":" + bh::json::quoted(workspaces.front()) +
         ",\"description\":\"The folder that paths are relative to\"}";
}

}  // namespace

std::string definition_json(const Definition &d, const std::vector<std::string_view> &workspaces) {
  std::string out = "{\"name\":" + bh::json::quoted(d.name);
  out += ",\"title\":" + bh::json::quoted(d.title);
  out += ",\"description\":" + bh::json::quoted(d.description);
  out += R"(,"inputSchema":{"type":"object","additionalProperties":false,"properties":{)";
  out += d.properties + (d.properties.empty() ? "" : ",") + workspace_property(workspaces) + "}";
  if (!d.required.empty()) out += ",\"required\":[" + std::string(d.required) + "]";
  return out + "},\"outputSchema\":" + d.output + "," + annotations(d.title, d.effect) + "}";
}

}  // namespace builtin_files
