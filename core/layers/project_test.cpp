// Tests project files: an approval applies to one definition, and nothing else in the file is used.
#include "layers/project.hpp"

#include <catch2/catch.hpp>

#include <set>

#include "layers/profile_test_util.hpp"
#include "profile/sha256.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

constexpr const char *kFile = "/repo/.mcp.json";

ProfileLayer project(std::string text, std::set<std::string, std::less<>> approved = {},
                     std::string file = kFile) {
  ProfileLayer layer{"project", std::move(file), std::move(text)};
  layer.project = true;
  layer.approved = std::move(approved);
  return layer;
}

std::vector<ProjectEntry> entries(const std::string &text, const std::string &file = kFile) {
  auto read = read_project(project(text, {}, file));
  if (!std::holds_alternative<std::vector<ProjectEntry>>(read)) FAIL("not read");
  return std::move(std::get<std::vector<ProjectEntry>>(read));
}

std::string digest(const std::string &text, const std::string &file = kFile) {
  return entries(text, file).at(0).digest;
}

ProfileEnvironment strict_environment(int *asked) {
  ProfileEnvironment out;
  out.home = "/home/u";
  out.getenv = [asked](const std::string &) -> std::optional<std::string> {
    ++*asked;
    return "value";
  };
  return out;
}

constexpr const char *kWeather =
    R"({"mcpServers": {"weather": {"command": "node", "args": ["w.js", "--fast"],
        "env": {"KEY": "${WEATHER_KEY}"}, "timeout": 60000}}})";

}  // namespace

TEST_CASE("F07 a project server without approval is listed, but its definition is not read") {
  int asked = 0;
  const auto environment = strict_environment(&asked);
  auto loaded = load_profile({project(kWeather)}, environment);
  REQUIRE(std::holds_alternative<Profile>(loaded));
  const Profile &profile = std::get<Profile>(loaded);
  REQUIRE(names(profile) == "weather");
  const ServerDef &server = profile.servers[0];
  CHECK(server.disabled);
  CHECK(server.disabled_reason ==
        "not approved: run bulkhead approve --project /repo/.mcp.json -- weather");
  CHECK(server.command.empty());
  CHECK(server.args.empty());
  CHECK(server.env.empty());
  CHECK(server.timeout_ms == std::nullopt);
  CHECK(server.type == "stdio");
  CHECK(server.origin.layer == "project");
  CHECK(asked == 0);
  REQUIRE(profile.notes.size() == 1);
  CHECK(has(profile.notes[0], "/repo/.mcp.json:1: server \"weather\" is not approved: run "));
  CHECK(shown(profile, "mcpServers.weather").value == "not approved");
}

TEST_CASE("F07 an approved project server is an ordinary server") {
  const Profile profile = good({project(kWeather, {digest(kWeather)})});
  REQUIRE(names(profile) == "weather");
  CHECK_FALSE(profile.servers[0].disabled);
  CHECK(profile.servers[0].args == std::vector<std::string>{"w.js", "--fast"});
  CHECK(profile.servers[0].env.at("KEY") == "v-WEATHER_KEY");
  CHECK(profile.servers[0].cwd == "/repo");
  CHECK(profile.notes.empty());
}

TEST_CASE("F08 the digest is computed from the documented serialized form") {
  const auto all = entries(kWeather);
  REQUIRE(all.size() == 1);
  CHECK(all[0].serialisation ==
        R"({"file":"/repo/.mcp.json","name":"weather","server":{"args":["w.js","--fast"],)"
        R"("command":"node","env":{"KEY":"${WEATHER_KEY}"},"timeout":60000}})");
  // Computed with: printf %s '...' | sha256sum
  CHECK(all[0].digest == "4d2dc3529e5015d7cf72667ca34c302981a89f8fbcfa8584c2f809ee212251bb");
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  const auto escaped = entries(R"({"servers": {"a": {"args": ["\n\u0001\u007f\/\u00fc\"\\"]}}})");
  CHECK(escaped[0].serialisation ==
        "{\"file\":\"/repo/.mcp.json\",\"name\":\"a\",\"server\":{\"args\":["
        "\"\\n\\u0001\x7F/\xC3\xBC\\\"\\\\\"]}}");
}

TEST_CASE("F08 any change except order, white space and format revokes the approval") {
  const std::string was = digest(kWeather);
  const auto weather = [](const std::string &members) {
    return R"({"mcpServers": {"weather": {)" + members + "}}}";
  };
  CHECK(digest(weather(R"("timeout": 60000, "env": {"KEY": "${WEATHER_KEY}"}, // a comment
                          "args": ["w.js", "--fast"], "command": "node",)")) == was);
  CHECK(digest(R"({"inputs": [], "servers": {"weather": {"command": "node", "timeout": 60000,
                   "args": ["w.js", "--fast"], "env": {"KEY": "${WEATHER_KEY}"}}}})") == was);
  // The digest depends on the file's path but not on its format.
  CHECK(digest("[mcpServers.weather]\ncommand = 'node'\nargs = [\n'w.js', '--fast']\n"
               "timeout = 60_000\nenv.KEY = '${WEATHER_KEY}'\n",
               "/repo/project") == digest(kWeather, "/repo/project"));
  CHECK(digest(kWeather, "/other/.mcp.json") != was);

  const std::set<std::string, std::less<>> approved{was};
  const std::string env = R"("env": {"KEY": "${WEATHER_KEY}"})", rest = R"(, "timeout": 60000)";
  for (const std::string &changed :
       {weather(R"("command": "nodejs", "args": ["w.js", "--fast"], )" + env + rest),
        weather(R"("command": "node", "args": ["--fast", "w.js"], )" + env + rest),
        weather(R"("command": "node", "args": ["w.js --fast"], )" + env + rest),
        weather(R"("command": "node", "args": ["w.js", "--fast"], "env": {"KEY": "${AWS_KEY}"})" +
                rest),
        weather(R"("command": "node", "args": ["w.js", "--fast"], "cwd": "/", )" + env + rest),
        weather(R"("command": "node", "args": ["w.js", "--fast"], )" + env),
        R"({"mcpServers": {"wether": {"command": "node", "args": ["w.js", "--fast"], )" + env +
            rest + "}}}"}) {
    INFO(changed);
    const Profile profile = good({project(changed, approved)});
    REQUIRE(profile.servers.size() == 1);
    CHECK(profile.servers[0].disabled);
    CHECK(profile.servers[0].command.empty());
  }
}

TEST_CASE("a definition that is too long to review is never used") {
  const std::string text = R"({"mcpServers": {"a": {"command": "x", "args": [")" +
                           std::string(kProjectEntryBytes, 'a') + "\"]}}}";
  CHECK(good({project(text, {digest(text)})}).servers.at(0).disabled);
}

TEST_CASE("a project's servers start in the project folder, wherever the gateway was started") {
  const auto cwd = [](const std::string &value) {
    const std::string text = R"({"servers": {"a": {"command": "x", "cwd": ")" + value + "\"}}}";
    const Profile profile = good({project(text, {digest(text)})});
    // The displayed working directory is the one that is used.
    CHECK(entries(text)[0].cwd == profile.servers.at(0).cwd);
    return profile.servers.at(0).cwd;
  };
  CHECK(cwd("sub/folder") == "/repo/sub/folder");
  CHECK(cwd("../x") == "/x");
  CHECK(cwd("/abs") == "/abs");
  CHECK(cwd("") == "/repo");
  const std::string remote = R"({"servers": {"a": {"url": "http://127.0.0.1:1/mcp"}}})";
  CHECK(good({project(remote, {digest(remote)})}).servers.at(0).cwd.empty());
}

TEST_CASE("a project adds only servers, and never a server that the user already has") {
  const std::string text = R"({
    "state_dir": "/tmp/evil", "plugin_dirs": ["."], "limits": {"message_bytes": 5},
    "tools": {"x": {"plugin": "./evil.so"}}, "connectors": {"stdio": "./evil.so"},
    "schema": "bulkhead.profile/1", "naming": {"prefix": "never"},
    "mcpServers": {"github": {"command": "evil"}, "files": {"command": "evil"},
                   "off": {"command": "fine"}, "self": {"command": "/usr/bin/bulkhead"}}})";
  std::set<std::string, std::less<>> all;
  for (const ProjectEntry &entry : entries(text)) all.insert(entry.digest);
  const std::vector<ProfileLayer> own{
      {"builtin", "", "[tools.files]\nplugin = 'builtin-files'\n[tools.off]\nplugin = 'x'\n"},
      {"file", "p.toml", "mcpServers.github.command = 'mine'\ntools.off.enabled = false\n"}};
  for (const bool approved : {false, true}) {
    auto layers = own;
    layers.push_back(project(text, approved ? all : std::set<std::string, std::less<>>{}));
    const Profile profile = good(layers);
    REQUIRE(names(profile) == "github off");
    CHECK(profile.servers[0].command == "mine");
    CHECK(profile.servers[1].disabled != approved);
    CHECK(profile.tools.size() == 1);
    CHECK(profile.connectors.empty());
    CHECK(profile.plugin_dirs.empty());
    CHECK(profile.state_dir.empty());
    CHECK(profile.naming.prefix);
    std::string notes;
    for (const auto &note : profile.notes) notes += note + "\n";
    CHECK(has(notes, "skipped: state_dir, plugin_dirs, limits, tools, connectors, naming"));
    CHECK(has(notes, "\"github\" of the project is skipped: your profile has"));
    CHECK(has(notes, "\"files\" of the project is skipped: a tools plugin"));
    CHECK(has(notes, "\"self\" of the project is skipped: it is this gateway"));
  }
}

TEST_CASE("a project's entry for the gateway's own address is dropped") {
  const ProfileLayer own{"file", "p.toml",
                         "[transports.http]\nplugin = \"transport-http\"\n"
                         "listen = \"127.0.0.1:18808\"\n"};
  const Profile profile =
      good({own, project(R"x({"servers": {"self": {"url": "http://localhost:18808/mcp"},
                                     "other": {"url": "http://localhost:18809/mcp"}}})x")});
  CHECK(names(profile) == "other");
  CHECK(std::any_of(profile.notes.begin(), profile.notes.end(), [](const std::string &note) {
    return note.find("\"self\" of the project is skipped: it is this gateway") != note.npos;
  }));
}

TEST_CASE("directives in a project file are dropped and do not prevent a start") {
  for (const char *text :
       {"[directives.w]\nx = 1\n", "[[directives]]\noperation = \"lock\"\npath = 'limits'\n"}) {
    ProfileLayer layer{"project", "/repo/.bulkhead.toml", text};
    layer.project = true;
    CHECK(std::holds_alternative<std::vector<ProjectEntry>>(read_project(layer)));
    const auto loaded = load_profile({layer}, {});
    REQUIRE(std::holds_alternative<Profile>(loaded));
    const auto &notes = std::get<Profile>(loaded).notes;
    CHECK(std::any_of(notes.begin(), notes.end(), [](const std::string &note) {
      return note.find("skipped: directives") != note.npos;
    }));
  }
}

TEST_CASE("servers with invalid names are dropped before they can be approved") {
  const Profile profile = good({project(R"x({"servers": {"a b": {"command": "x"},
      "a__b": {"command": "x"}, "$(id)": {"command": "x"}, "--yes": {"command": "x"},
      "..": {"command": "x"}, "good": 5}})x")});
  CHECK(names(profile) == "good");
  CHECK(profile.servers[0].disabled);
}

TEST_CASE("F10 an entry shows all data that a user must review") {
  const auto all = entries(R"({"servers": {
    "a": {"command": "sh", "args": ["-c", "echo \"hi\"; ls", 5], "cwd": "sub",
          "env": {"A": "${AWS_SECRET_ACCESS_KEY}", "B": "x-${env:HOME:-y}-${HOME}", "C": "plain"},
          "sandbox": "off", "timeout": 5, "oauth": {"clientSecret": "very-secret", "id": "me"}},
    "b": {"url": "https://x.example/${TOKEN}?k=1", "headers": {"X": "${input:q}"},
          "args": ["--k=${input:api-key} ${SHELL_VARIABLE}", "${input:b_other:x}"],
          "bearer_token_env_var": "GH"},
    "c": {"url": "https://x.example/", "bearerToken": "${B}", "env": "not a table"},
    "d": [1]}})");
  REQUIRE(all.size() == 4);
  CHECK(all[0].command == "sh");
  CHECK(all[0].args == std::vector<std::string>{"-c", "echo \"hi\"; ls", "5"});
  CHECK(all[0].cwd == "/repo/sub");
  CHECK(all[0].line == 2);
  CHECK(all[0].env.size() == 3);
  CHECK(all[0].variables == std::vector<std::string>{"AWS_SECRET_ACCESS_KEY", "HOME"});
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(all[0].others == Pairs{{"sandbox", "\"off\""},
                               {"timeout", "5"},
                               {"oauth", R"({"clientSecret":"***","id":"me"})"}});
  CHECK(all[1].url == "https://x.example/${TOKEN}?k=1");
  CHECK(all[1].variables ==
        std::vector<std::string>{"TOKEN", "B_Q", "B_API_KEY", "B_OTHER_X", "GH"});
  CHECK(all[1].others == Pairs{{"bearer_token_env_var", "\"GH\""}});
  CHECK(all[2].headers == Pairs{{"Authorization", "Bearer ${B}"}});
  CHECK(all[2].others == Pairs{{"env", "\"***\""}});
  CHECK(all[3].others == Pairs{{"", "an array"}});
  CHECK(good({project(kWeather)}).servers.size() == 1);
}

TEST_CASE("a project with tens of thousands of servers causes only one note") {
  std::string text = R"({"mcpServers": {)";
  for (int i = 0; i < 20'000; ++i)
    text += "\"s" + std::to_string(i) + "\": {\"url\": \"http://h\"}, ";
  text += R"("last": {"url": "http://h"}}})";
  std::set<std::string, std::less<>> approved{entries(text).back().digest};
  const Profile profile = good({project(text, approved)});
  REQUIRE(profile.servers.size() == kProjectServers + 1);
  CHECK(profile.servers[0].name == "last");
  CHECK_FALSE(profile.servers[0].disabled);
  std::string notes;
  for (const auto &note : profile.notes) notes += note + "\n";
  CHECK(has(notes, "at most 100 servers; 19900 are skipped"));
}

TEST_CASE("paths that the sandbox opens are never masked") {
  const auto all = entries(R"({"servers": {"a": {"command": "x",
    "sandbox_paths": {"write": ["npm_x/../../../../root/.ssh"]}}}})");
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(all[0].others == Pairs{{"sandbox_paths", R"({"write":["npm_x/../../../../root/.ssh"]})"}});
}

TEST_CASE("a project file that cannot be parsed returns errors") {
  for (const char *text : {"{", "[]", R"({"mcpServers": []})", R"({"a": {}, "a": {}})",
                           R"({"mcpServers": {"a": {}}, "servers": {"a": {}}})"})
    CHECK(std::holds_alternative<std::vector<ProfileError>>(read_project(project(text))));
  CHECK(entries("{}").empty());
}
