#include "builtin-http/tools.hpp"

#include <algorithm>

#include "tool-kit/arguments.hpp"
#include "tool-kit/results.hpp"

namespace builtin_http {
namespace {

constexpr const Tool *always[] = {&fetch_tool, &grep_tool, &headers_tool};
constexpr const Tool *by_method[] = {&get_tool, &head_tool,  &post_tool,
                                     &put_tool, &patch_tool, &delete_tool};

constexpr std::string_view echo_definition = R"json({
  "name":"echo","title":"Echo",
  "description":"Returns the text unchanged. Use it to check that tools are reachable.",
  "inputSchema":{"type":"object","additionalProperties":false,"required":["text"],"properties":{
    "text":{"type":"string","description":"Any text"}}},
  "annotations":{"title":"Echo","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,
    "openWorldHint":false}})json";

constexpr std::string_view prefix = "http_";

bool is_offered(const Config &config, const Tool &tool) {
  const std::string_view method = tool.name.substr(prefix.size());
  return std::find(config.methods.begin(), config.methods.end(), method) != config.methods.end();
}

}  // namespace

const Tool *find_tool(const Config &config, std::string_view name) {
  for (const Tool *tool : always) {
    if (tool->name == name) return tool;
  }
  for (const Tool *tool : by_method) {
    if (tool->name == name) return is_offered(config, *tool) ? tool : nullptr;
  }
  return nullptr;
}

std::string tool_definitions(const Config &config) {
  std::string out = "[";
  for (const Tool *tool : always) out.append(tool->definition()).append(",");
  for (const Tool *tool : by_method) {
    if (is_offered(config, *tool)) out.append(tool->definition()).append(",");
  }
  return out.append(echo_definition) + "]";
}

std::string echo(std::string_view arguments) {
  tool_kit::Arguments a(arguments);
  const std::string text = a.text("text");
  const bool given = a.has("text");
  std::string problem = a.problem();
  if (problem.empty() && !given) problem = "the argument \"text\" is missing";
  return problem.empty() ? tool_kit::text_result(text) : tool_kit::error_result(problem);
}

}  // namespace builtin_http
