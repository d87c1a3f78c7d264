// Tests finding names in rules and tool lists that do not match any server or tool.
#include "sources/unmatched_names.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

using Lines = std::vector<std::string>;

ServerDef server_with(const std::string &name, const std::string &tools = {}) {
  ServerDef def;
  def.name = name;
  def.origin = {"file", "/p.toml", 3};
  if (tools.empty()) return def;
  def.kept.definition = "d";
  def.kept.lists = {{0, R"({"capabilities":{"tools":{}},"instructions":"","tools":[)" + tools +
                            R"(],"resources":[],"resourceTemplates":[],"prompts":[]})"}};
  return def;
}

// A profile with two servers whose lists are stored.
Profile two_servers() {
  Profile out;
  out.servers = {server_with("github", R"({"name":"list_issues"},{"name":"get_issue"})"),
                 server_with("memory", R"({"name":"delete_entities"})")};
  return out;
}

Lines found(Profile profile, const std::string &sections, const std::string &lines = "{}",
            const std::string &layer = "file") {
  PluginUse policy;
  policy.config_json = R"({"profile_rules":[{"layer":")" + layer +
                       R"(","file":"/p.toml","sections":)" + sections + R"(,"lines":)" + lines +
                       "}]}";
  profile.policies = {policy};
  return unmatched_names(profile);
}

// Returns the lines that are reported for a single rule with this condition.
Lines condition(const Profile &profile, const std::string &text) {
  std::string json;
  for (const char c : text) json += (c == '"' || c == '\\' ? "\\" : "") + std::string(1, c);
  return found(profile, R"({"security":{"rules":{"mcp":{"a":{"if":")" + json + R"("}}}}})",
               R"({"security.rules.mcp.a.if":7})");
}

const std::string at_rule = "/p.toml:7: security.rules.mcp.a.if: ";

}  // namespace

TEST_CASE("a table of a server that does not exist is reported with its line") {
  CHECK(found(two_servers(),
              R"({"security":{"servers":{"githb":{"allowed_tools":["x"]},)"
              R"("memory":{}}}})",
              R"({"security.servers.githb":12})") ==
        Lines{"/p.toml:12: security.servers.githb: no server is named \"githb\"; did you mean "
              "\"github\"?"});
}

TEST_CASE("allowed tools are compared with the stored list of their server") {
  const std::string sections =
      R"({"security":{"servers":{"github":{"allowed_tools":["list_issues","get_isue"]},)"
      R"("memory":{"allowed_tools":["list_issues"]}}}})";
  const Lines lines =
      found(two_servers(), sections, R"({"security.servers.github.allowed_tools":4})");
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        "/p.toml:4: security.servers.github.allowed_tools: server \"github\" lists no tool "
        "\"get_isue\"; did you mean \"get_issue\"? This entry allows nothing, and tools that the "
        "list does not name are blocked");
  CHECK(lines[1] ==
        "/p.toml: security.servers.memory.allowed_tools: server \"memory\" lists no tool "
        "\"list_issues\". This entry allows nothing, and tools that the list does not name are "
        "blocked");

  Profile unknown = two_servers();
  for (ServerDef &def : unknown.servers) def.kept = {};
  CHECK(found(unknown, sections).empty());

  Profile definition = two_servers();
  definition.servers[0].allow_tools = {"*", "list_issues", "close"};
  CHECK(unmatched_names(definition) ==
        Lines{"/p.toml:3: allowTools of github: server \"github\" lists no tool \"close\""});
}

TEST_CASE("conditions that name a server or tool that does not exist are reported") {
  const Profile profile = two_servers();
  CHECK(condition(profile, R"(mcp.request.server_name == "githb")") ==
        Lines{at_rule + "no server is named \"githb\"; did you mean \"github\"?"});
  CHECK(condition(profile, R"(!(mcp.request.server_name=='githb') && x)").size() == 1);
  CHECK(condition(profile, R"(mcp.request.server_name in ["memory", 'mem', "x"])").size() == 2);
  CHECK(condition(profile, R"(mcp.request.tool_name == "get_isue")") ==
        Lines{at_rule + "no server lists a tool \"get_isue\"; did you mean \"get_issue\"?"});
  CHECK(condition(profile, R"(server_name == "memory" && tool_name == "get_issue")") ==
        Lines{at_rule + "server \"memory\" lists no tool \"get_issue\""});
  CHECK(condition(profile, R"(mcp.request.tool_name == "memory__delete_entities")") ==
        Lines{at_rule + "\"memory__delete_entities\" is the name that clients see; rules match the "
                        "tool's name on the server, \"delete_entities\""});
}

TEST_CASE("names that exist, and texts that are not compared, are not reported") {
  const Profile profile = two_servers();
  for (const char *text : {
           R"(mcp.request.server_name == "github" || mcp.request.server_name == "memory")",
           R"(mcp.request.tool_name in ["get_issue", "delete_entities"])",
           R"(mcp.request.server_name.startsWith("x"))",
           R"(mcp.request.arguments.server_name_2 == "x")",
           R"(mcp.request.my_server_name == "x")",
           R"("server_name == 'x'" == mcp.request.uri)",
           R"(mcp.request.server_name == "a\"b")",
           R"(mcp.request.server_name == "x)",
           R"(mcp.request.server_name in ["github")",
           R"(mcp.request.tool_name == "")",
       }) {
    INFO(text);
    CHECK(condition(profile, text).empty());
  }
}

TEST_CASE("a tool name is not reported if any possible server's list is unknown") {
  Profile profile = two_servers();
  PluginUse files;
  files.id = "files";
  profile.tools = {files};
  CHECK(condition(profile, R"(mcp.request.tool_name == "read")").empty());
  CHECK(condition(profile, R"(server_name == "memory" && tool_name == "read")").size() == 1);
  CHECK(condition(profile, R"(server_name == "files" && tool_name == "read")").empty());
  CHECK(condition(profile, R"(server_name == "other")").size() == 1);
}

TEST_CASE("rules of the corporation's layer are not checked, and the number of lines is limited") {
  const std::string sections = R"({"security":{"servers":{"githb":{}}}})";
  CHECK(found(Profile{}, sections).empty());
  CHECK(found(two_servers(), sections, "{}", "corp").empty());
  CHECK(found(two_servers(), sections, "{}", "user").size() == 1);
  std::string many;
  for (int i = 0; i < 60; ++i) many += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":{}";
  CHECK(found(two_servers(), R"({"security":{"servers":{)" + many + "}}}").size() ==
        max_unmatched_names);
}
