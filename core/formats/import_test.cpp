// Tests that the servers of other clients are found and imported without credentials, and that the
// resulting profile can be loaded.
#include <stdlib.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>

#include "formats/import.hpp"
#include "layers/profile_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::test;
namespace fs = std::filesystem;

namespace {

// A temporary home directory that contains a project folder. The destructor removes it.
struct Folders {
  Folders() {
    char path[] = "/tmp/bulkhead-import-XXXXXX";
    REQUIRE(::mkdtemp(path) != nullptr);
    home = path;
    cwd = home + "/project";
  }
  ~Folders() { fs::remove_all(home); }
  void write(const std::string &file, const std::string &text) const {
    fs::create_directories(fs::path(file).parent_path());
    std::ofstream(file) << text;
  }
  std::string home, cwd;
};

const std::string kCanary = "canary-8d1f0c";

}  // namespace

TEST_CASE("the files of all clients are found") {
  const Folders f;
  f.write(f.home + "/.claude.json", R"({"history": [1], "numStartups": 3,
    "mcpServers": {"a": {"command": "a"}},
    "projects": {")" + f.cwd + R"(": {"mcpServers": {"p": {"command": "p"}}},
                 "/other": {"mcpServers": {"not": {"command": "x"}}}}})");
  f.write(f.home + "/.claude/settings.json", R"({"mcpServers": {"s": {"command": "s"}}})");
  f.write(f.home + "/.config/Claude/claude_desktop_config.json",
          R"({"mcpServers": {"d": {"command": "d"}}})");
  f.write(f.home + "/.config/Code/User/mcp.json", R"({"servers": {"v": {"command": "v"},},})");
  f.write(f.home + "/.config/Code/User/settings.json",
          R"({"x": 1, "x": 2, "mcp": {"servers": {"vs": {"command": "v"}}}})");
  f.write(f.home + "/.cursor/mcp.json", R"({"mcpServers": {}})");
  f.write(f.home + "/.gemini/settings.json", R"({"mcpServers": {"g": {"url": "http://h/sse"}}})");
  f.write(f.cwd + "/.mcp.json", R"({"mcpServers": {"m": {"command": "m"}}})");
  f.write(f.cwd + "/.vscode/mcp.json", R"({"servers": {"w": {"command": "w"}}})");
  f.write(f.cwd + "/.cursor/mcp.json", "{ broken");
  std::string all;
  for (const FoundConfig &found : find_client_configs(f.home, f.cwd, true)) {
    all += found.client + ":";
    for (const std::string &server : found.servers) all += server + ",";
    if (!found.error.empty()) all += "!";
    if (!found.other_project.empty()) all += "in " + found.other_project;
    all += " ";
  }
  CHECK(all ==
        "Claude Code:a, Claude Code:p, Claude Code:not,in /other Claude Code:s, Claude Desktop:d, "
        "VS Code:v, VS Code:vs, "
        "Gemini CLI:g, Claude Code:m, VS Code:w, Cursor:! ");
  const Profile profile =
      good({{"file", "i.toml", import_profile(find_client_configs(f.home, f.cwd, true), nullptr)}});
  CHECK(names(profile) == "a p s d v vs g m w");
  CHECK(profile.servers[6].type == "sse");
}

TEST_CASE("files in the current folder, which may belong to a repository, are ignored by default") {
  const Folders f;
  f.write(f.home + "/.cursor/mcp.json",
          R"({"mcpServers": {"mine": {"args": ["-y", "--token", "canary-8d1f0c"], "command": "npx"},
                             "far": {"url": "https://u:canary-8d1f0c@h/"}}})");
  for (const char *file : {"/.mcp.json", "/.cursor/mcp.json", "/.gemini/settings.json"})
    f.write(f.cwd + file, R"({"mcpServers": {"theirs": {"command": "evil"}}})");
  f.write(f.cwd + "/.vscode/mcp.json", R"({"servers": {"theirs": {"command": "evil"}}})");
  const auto mine = find_client_configs(f.home, f.cwd, false);
  REQUIRE(mine.size() == 1);
  CHECK(mine[0].servers == std::vector<std::string>{"mine", "far"});
  CHECK(mine[0].commands == std::vector<std::string>{"npx -y --token ***", "https://***@h/"});
  CHECK(find_client_configs(f.home, f.cwd, true).size() == 5);
  // A file that never ends, such as /dev/zero, is not read.
  fs::remove(f.home + "/.cursor/mcp.json");
  fs::create_symlink("/dev/zero", f.home + "/.cursor/mcp.json");
  CHECK(has(find_client_configs(f.home, f.cwd, false).at(0).error, "not a regular file"));
}

TEST_CASE("credentials are not copied, and the profile loads with their variables") {
  const Folders f;
  f.write(f.home + "/.claude.json", R"({"mcpServers": {
    "git hub": {"command": "npx", "args": ["-y", "x\n\"q\""], "cwd": "/w", "timeout": 5000,
      "env": {"GITHUB_TOKEN": "canary-8d1f0c", "LEVEL": "info", "REF": "${OTHER}",
              "DB_URL": "postgres://u:canary-8d1f0c@h/db", "API_KEY": "${API_KEY:-canary-8d1f0c}",
              "KEY2": "${SET_BY_USER}"}},
    "remote": {"type": "http", "url": "https://u:canary-8d1f0c@h:1/a?api_key=canary-8d1f0c&z=1#x",
      "disabled": true, "allowTools": ["t"], "trust": true,
      "headers": {"X-Api-Key": "canary-8d1f0c", "Accept": "x"}},
    "bearer": {"url": "https://h/mcp", "bearerToken": "canary-8d1f0c"},
    "auth": {"url": "https://h/mcp", "headers": {"Authorization": "Bearer canary-8d1f0c",
                                                 "X": "Bearer ${T}"}},
    "bad": {"url": "ws://h", "headers": {"Authorization": "canary-8d1f0c"}},
    "odd": 3
  }})");
  std::vector<std::string> secrets;
  const std::string text = import_profile(find_client_configs(f.home, f.cwd, true), &secrets);
  INFO(text);
  CHECK(text.find(kCanary) == std::string::npos);
  const std::string from = " from " + f.home + "/.claude.json";
  CHECK(secrets == std::vector<std::string>{
                       "GIT_HUB_GITHUB_TOKEN" + from, "OTHER" + from, "GIT_HUB_DB_URL" + from,
                       "API_KEY" + from, "SET_BY_USER" + from, "REMOTE_AUTHORIZATION" + from,
                       "REMOTE_API_KEY" + from, "REMOTE_X_API_KEY" + from,
                       "BEARER_BEARERTOKEN" + from, "AUTH_AUTHORIZATION" + from, "T" + from});
  const Profile profile = good({{"file", "i.toml", text}});
  REQUIRE(names(profile) == "git-hub remote bearer auth");
  const ServerDef &github = profile.servers[0];
  CHECK(github.args == std::vector<std::string>{"-y", "x\n\"q\""});
  CHECK(github.cwd == "/w");
  CHECK(github.timeout_ms == 5000u);
  CHECK(github.env.at("GITHUB_TOKEN") == "v-GIT_HUB_GITHUB_TOKEN");
  CHECK(github.env.at("LEVEL") == "info");
  CHECK(github.env.at("REF") == "v-OTHER");
  CHECK(github.env.at("API_KEY") == "v-API_KEY");
  CHECK(github.env.at("KEY2") == "v-SET_BY_USER");
  CHECK(profile.servers[1].disabled);
  CHECK(profile.servers[1].url == "https://h:1/a?api_key=${env:REMOTE_API_KEY}&z=1");
  CHECK(profile.servers[1].allow_tools == std::vector<std::string>{"t"});
  CHECK(profile.servers[2].headers.at("Authorization") == "Bearer v-BEARER_BEARERTOKEN");
  CHECK(profile.servers[3].headers.at("Authorization") == "Bearer v-AUTH_AUTHORIZATION");
  CHECK(has(text, "# skipped because it is invalid: mcpServers.bad.url"));
  CHECK(has(text, "# originally named \"git hub\""));
  CHECK(has(text, "# not copied: the header \"Accept\""));
}

TEST_CASE("VS Code's inputs and folder variables are replaced") {
  const Folders f;
  f.write(f.cwd + "/.vscode/mcp.json", R"({"inputs": [{"id": "key"}], "servers": {
    "a": {"command": "${workspaceFolder}/run", "args": ["${workspaceFolder}", "${other}"],
          "env": {"K": "${input:key}", "N": null, "P": 80}, "envFile": ".env"}}})");
  std::vector<std::string> secrets;
  const std::string text = import_profile(find_client_configs(f.home, f.cwd, true), &secrets);
  const Profile profile = good({{"file", "i.toml", text}});
  REQUIRE(names(profile) == "a");
  CHECK(profile.servers[0].command == f.cwd + "/run");
  CHECK(profile.servers[0].args == std::vector<std::string>{f.cwd, "${other}"});
  CHECK(profile.servers[0].env.at("K") == "v-A_KEY");
  CHECK(profile.servers[0].env.at("P") == "80");
  CHECK(profile.servers[0].env.size() == 2);
  CHECK(secrets.size() == 1);
  CHECK(has(text, "# its env file is not read; put its variables in env"));
}

TEST_CASE(
    "a server that two clients share is imported once; a different server of that name gets a "
    "suffix") {
  const Folders f;
  f.write(
      f.home + "/.claude.json",
      R"({"mcpServers": {"a": {"type": "stdio", "command": "x", "env": {"TOKEN": "1", "A_KEY": "3"}},
                         "b": {"command": "x"}}})");
  f.write(f.home + "/.cursor/mcp.json",
          R"({"mcpServers": {"a": {"command": "x", "env": {"TOKEN": "2", "A_KEY": "4"}},
                             "b": {"command": "y"},
                             "a__b": {"command": "z"}, "builtin": {"command": "z"}}})");
  std::vector<std::string> secrets;
  const std::string text = import_profile(find_client_configs(f.home, f.cwd, true), &secrets);
  const Profile profile = good({{"file", "i.toml", text}});
  CHECK(names(profile) == "a b b-2 a_b builtin-server");
  const std::string from = " from " + f.home + "/.claude.json";
  CHECK(secrets == std::vector<std::string>{"A_TOKEN" + from, "A_KEY" + from});
  CHECK(profile.notes.empty());
}

TEST_CASE("servers from Codex, Windsurf, Zed, Cline and Continue are imported") {
  const Folders f;
  f.write(f.home + "/.codex/config.toml", R"(model = "gpt"
[mcp_servers.c1]
command = "npx"
args = ["-y", "one"]
env_vars = ["HOME_OF_C"]
startup_timeout_sec = 20
[mcp_servers.c1.env]
C_TOKEN = "canary-8d1f0c"
[mcp_servers.c2]
url = "https://h/mcp"
bearer_token_env_var = "C2_TOKEN"
enabled = false
env_http_headers = { X-Team = "TEAM" }
)");
  f.write(f.home + "/.codeium/windsurf/mcp_config.json",
          R"({"mcpServers": {"w": {"serverUrl": "https://w/mcp", "disabledTools": ["x"]}}})");
  f.write(f.home + "/.config/zed/settings.json", R"({ // comments
    "theme": "One", "context_servers": {
      "z1": {"source": "custom", "command": "z", "args": ["-a"], "env": {}},
      "z2": {"command": {"path": "old", "args": ["b"], "env": {"Z": "1"}}, "settings": {}},}})");
  f.write(f.home +
              "/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/"
              "cline_mcp_settings.json",
          R"({"mcpServers": {"cl": {"type": "streamableHttp", "url": "https://cl/mcp",
                                    "disabled": true, "autoApprove": [], "timeout": 60}}})");
  f.write(f.home + "/.continue/config.yaml", "name: x\nmcpServers:\n  - name: y\n");
  f.write(f.home + "/.continue/mcpServers/b.json", R"({"mcpServers": {"co": {"command": "co"}}})");
  f.write(f.home + "/.continue/mcpServers/a.yaml", "mcpServers: []\n");
  f.write(f.cwd + "/.continue/mcpServers/p.json", R"({"mcpServers": {"cop": {"command": "x"}}})");
  f.write(f.cwd + "/.codex/config.toml", "[mcp_servers.cp]\ncommand = \"x\"\n");
  f.write(f.cwd + "/.zed/settings.json", R"({"context_servers": {"zp": {"command": "x"}}})");
  std::string all;
  for (const FoundConfig &found : find_client_configs(f.home, f.cwd, false)) {
    all += found.client + ":";
    for (const std::string &server : found.servers) all += server + ",";
    all += (found.error.empty() ? "" : "!") + std::string(" ");
  }
  CHECK(all == "Codex:c1,c2, Windsurf:w, Zed:z1,z2, Cline:cl, Continue:! Continue:co, Continue:! ");
  std::vector<std::string> secrets;
  const std::string text = import_profile(find_client_configs(f.home, f.cwd, true), &secrets);
  INFO(text);
  CHECK(text.find(kCanary) == std::string::npos);
  CHECK(has(text, "# YAML is not supported"));
  const Profile profile = good({{"file", "i.toml", text}});
  REQUIRE(names(profile) == "c1 c2 w z1 z2 cl co cp zp cop");
  const auto &servers = profile.servers;
  CHECK(servers[0].env.at("HOME_OF_C") == "v-HOME_OF_C");
  CHECK(servers[0].env.at("C_TOKEN") == "v-C1_C_TOKEN");
  CHECK(servers[0].connect_timeout_ms == 20'000u);
  CHECK(servers[1].disabled);
  // The server is disabled, so references are not resolved.
  CHECK(servers[1].headers.at("X-Team") == "${env:TEAM}");
  CHECK(servers[1].headers.at("Authorization") == "Bearer ${env:C2_TOKEN}");
  CHECK(servers[2].url == "https://w/mcp");
  CHECK(servers[2].deny_tools == std::vector<std::string>{"x"});
  CHECK(servers[3].command == "z");
  CHECK(servers[4].command == "old");
  CHECK(servers[4].args == std::vector<std::string>{"b"});
  CHECK(servers[4].env.at("Z") == "1");
  CHECK(servers[5].disabled);
  CHECK(servers[5].type == "http");
  CHECK(servers[5].timeout_ms == 60'000u);  // Cline's time-outs are in seconds
  // Codex passes env_vars only if they are set, so HOME_OF_C is not listed.
  const std::string codex = " from " + f.home + "/.codex/config.toml";
  CHECK(secrets ==
        std::vector<std::string>{"C1_C_TOKEN" + codex, "C2_TOKEN" + codex, "TEAM" + codex});
  CHECK(has(text, "HOME_OF_C = \"${env:HOME_OF_C:-}\""));
  // A file of Continue without servers is not reported.
  f.write(f.home + "/.continue/config.yaml", "name: x\nmodels: []\n");
  CHECK(find_client_configs(f.home, f.cwd, false).size() == 6);
  const auto zed = find_client_configs(f.home, f.cwd, false).at(2);
  CHECK(zed.commands == std::vector<std::string>{"z -a", "old b"});
}

TEST_CASE("a project's server with a relative path starts in the project's folder") {
  const Folders f;
  f.write(f.cwd + "/tools/db.mjs", "");
  f.write(f.cwd + "/.mcp.json", R"({"mcpServers": {
    "dot": {"command": "node", "args": ["./tools/db.mjs"]},
    "plain": {"command": "node", "args": ["tools/db.mjs"]},
    "program": {"command": "../bin/x"},
    "own": {"command": "node", "args": ["./tools/db.mjs"], "cwd": "/srv"},
    "package": {"command": "npx", "args": ["-y", "@scope/server", "https://h/x", "/abs/path"]}}})");
  f.write(f.home + "/.claude.json",
          R"({"mcpServers": {"mine": {"command": "./x"}},
    "projects": {")" +
              f.cwd + R"(": {"mcpServers": {"there": {"command": "./x", "args": ["y"]}}}}})");
  const Profile profile =
      good({{"file", "i.toml", import_profile(find_client_configs(f.home, f.cwd, true), nullptr)}});
  std::map<std::string, std::string> folders;
  for (const ServerDef &server : profile.servers) folders[server.name] = server.cwd;
  CHECK(folders == std::map<std::string, std::string>{{"dot", f.cwd},
                                                      {"plain", f.cwd},
                                                      {"program", f.cwd},
                                                      {"own", "/srv"},
                                                      {"package", ""},
                                                      {"mine", ""},
                                                      {"there", f.cwd}});
}

TEST_CASE("a client's sign-in settings are named, because they cannot be copied") {
  const Folders f;
  f.write(
      f.home + "/.cursor/mcp.json",
      R"({"mcpServers": {"a": {"url": "https://h/", "auth": {"CLIENT_ID": "canary-8d1f0c"}}}})");
  const std::string text = import_profile(find_client_configs(f.home, f.cwd, false), nullptr);
  CHECK(has(text, "# not copied: \"auth\""));
  CHECK(text.find(kCanary) == std::string::npos);
}

TEST_CASE("Gemini's variables become references, and VS Code's prompts are explained") {
  const Folders f;
  f.write(f.home + "/.gemini/settings.json", R"({"mcpServers": {"g": {"command": "x",
    "env": {"A": "$MINE", "B": "${ALSO_MINE}", "C": "cost 5$", "D": "$1", "E": "${OPEN"},
    "headers": {}}}})");
  f.write(f.home + "/.config/Code/User/mcp.json", R"({"servers": {"v": {"command": "v",
    "args": ["--key", "${input:key}", "--url=${input:the-url}", "--key=${input:key}"]},
    "o": {"command": "o", "args": ["--token=${TOKEN}", "${input:a}"]},
    "w": {"command": "${workspaceFolder}/x"}}})");
  std::vector<std::string> secrets;
  const std::string text = import_profile(find_client_configs(f.home, f.cwd, false), &secrets);
  INFO(text);
  CHECK(has(text, "A = \"${env:MINE}\""));
  CHECK(has(text, "B = \"${env:ALSO_MINE}\""));
  CHECK(has(text, "C = \"cost 5$\""));
  CHECK(has(text, "D = \"$1\""));
  CHECK(has(text, "# set V_KEY to the value of ${input:key}\n"));
  CHECK_FALSE(has(text, "looks like a credential"));
  CHECK(has(text, "command are passed unchanged: replace ${workspaceFolder} with a path"));
  CHECK(has(text, "# set V_THE_URL to the value of ${input:the-url}\n"));
  CHECK(has(text, "# references in args are passed unchanged\n"));  // ${TOKEN}
  const std::string from = " from " + f.home + "/.config/Code/User/mcp.json";
  for (const char *name : {"V_KEY", "V_THE_URL", "O_A"})
    CHECK(std::count(secrets.begin(), secrets.end(), name + from) == 1);
  const Profile profile = good({{"file", "i.toml", text}});
  CHECK(profile.servers[0].args ==
        std::vector<std::string>{"--key", "v-V_KEY", "--url=v-V_THE_URL", "--key=v-V_KEY"});
}

TEST_CASE("importing no files or missing files yields an empty profile") {
  CHECK(good({{"f", "i.toml", import_profile({}, nullptr)}}).servers.empty());
  const std::string text =
      import_profile({{"Cursor", "/nowhere/mcp.json", {"mcpServers"}, {"a"}, ""}}, nullptr);
  CHECK(has(text, "# the file no longer exists"));
  CHECK(good({{"f", "i.toml", text}}).servers.empty());
}

TEST_CASE("an imported server lists the files of all clients that start it") {
  const Folders f;
  f.write(f.home + "/.claude.json",
          R"({"mcpServers": {"time": {"type": "stdio", "command": "uvx", "args": ["t"]},
                             "off": {"command": "o"}, "odd": {"type": "ws", "url": "http://h"}}})");
  f.write(f.home + "/.cursor/mcp.json",
          R"({"mcpServers": {"time": {"command": "uvx", "args": ["t"]}, "web": {"url": "http://h/"},
                             "off": {"command": "o", "disabled": true}}})");
  f.write(f.home + "/.gemini/settings.json",
          R"({"mcpServers": {"my time": {"command": "x"}, "time": {"command": "other"}}})");
  const auto found = find_client_configs(f.home, f.cwd, false);
  std::string all;
  for (const ImportedServer &server : import_servers(found, {})) {
    all += server.name + (server.refused.empty() ? "" : " refused") + ":";
    for (const auto &[config, name] : server.places) all += found[config].client + "/" + name + ",";
    CHECK(has(server.toml, "[mcpServers." + server.name + "]\n"));
    CHECK(has(server.toml, "# From " + found[server.config].client));
    if (server.refused.empty()) CHECK(names(good({{"f", "f.toml", server.toml}})) == server.name);
    all += " ";
  }
  CHECK(all ==
        "time:Claude Code/time,Cursor/time, off:Claude Code/off, odd refused: web:Cursor/web, "
        "my-time:Gemini CLI/my time, time-2:Gemini CLI/time, ");
}

TEST_CASE("a server that two clients define differently from a third is imported once") {
  const Folders f;
  const auto servers = [](const std::string &command) {
    return R"({"mcpServers": {"time": {"command": ")" + command +
           R"(", "env": {"TOKEN": "1"}}, "b": {"command": ")" + command + R"("}}})";
  };
  f.write(f.home + "/.claude.json", servers("x"));
  f.write(f.home + "/.cursor/mcp.json", servers("y"));
  f.write(f.home + "/.gemini/settings.json", servers("y"));
  const auto found = find_client_configs(f.home, f.cwd, false);
  std::vector<std::string> all;
  for (const ImportedServer &server : import_servers(found, {})) {
    std::string text = server.name;
    for (const auto &place : server.places) text += ' ' + found[place.config].client;
    all.push_back(text);
    CHECK(server.base_toml.empty() == (server.name == server.base));
    CHECK(has(server.toml, "${env:TIME_2_TOKEN}") == (server.name == "time-2"));
    CHECK(has(server.base_toml, "${env:TIME_TOKEN}") == (server.name == "time-2"));
  }
  CHECK(all == std::vector<std::string>{"time Claude Code", "b Claude Code",
                                        "time-2 Cursor Gemini CLI", "b-2 Cursor Gemini CLI"});
}

TEST_CASE("each credential in a URL is replaced, and gets a variable of its own") {
  const Folders f;
  const std::string one = "canary-8d1f0c-1234567890", two = "canary-8d1f0c-0987654321";
  f.write(f.home + "/.claude.json",
          R"({"mcpServers": {
            "a": {"url": "https://h/)" +
              one + "/x/" + two + R"("},
            "b": {"url": "https://h/?token=)" +
              one + "&token=" + two + R"("},
            "c": {"url": "https://user:canary-8d1f0c/a#b?c@h:8/mcp?k=1#end"}}})");
  std::vector<std::string> secrets;
  const std::string text = import_profile(find_client_configs(f.home, f.cwd, false), &secrets);
  INFO(text);
  CHECK(text.find(kCanary) == std::string::npos);
  CHECK(has(text, "\"https://h/${env:A_PATH}/x/${env:A_PATH_2}\""));
  CHECK(has(text, "\"https://h/?token=${env:B_TOKEN}&token=${env:B_TOKEN_2}\""));
  CHECK(has(text, "\"https://h:8/mcp?k=1\""));
  CHECK(secrets.size() == 5);
}

TEST_CASE("entries for this gateway are not imported") {
  const Folders f;
  f.write(f.home + "/.cursor/mcp.json",
          R"({"mcpServers": {"spawned": {"command": "/opt/bin/bulkhead", "args": ["stdio"]},
                             "served": {"url": "http://localhost:8808/mcp"},
                             "other": {"url": "http://127.0.0.1:8809/mcp"},
                             "bridge": {"command": "npx", "args": ["-y", "mcp-remote",
                                                                   "http://0.0.0.0:8808/mcp"]},
                             "shell": {"command": "bash", "args": ["-c", "exec bulkhead stdio"]},
                             "a": {"command": "a"}}})");
  const auto found = find_client_configs(f.home, f.cwd, false);
  std::string all;
  std::vector<std::string> skipped;
  for (const ImportedServer &server : import_servers(found, {"127.0.0.1:8808"}, &skipped))
    all += server.name + " ";
  CHECK(all == "other a ");
  CHECK(skipped == std::vector<std::string>{"spawned", "served", "bridge", "shell"});
  const std::string text = import_profile(found, nullptr, {"127.0.0.1:8808"});
  CHECK(names(good({{"file", "i.toml", text}})) == "other a");
  CHECK(has(text, "\"served\" is this gateway"));
}

TEST_CASE("a server that differs from another one only in settings is imported as disabled") {
  const Folders f;
  f.write(f.home + "/.claude.json", R"({"mcpServers": {
    "time": {"command": "uvx", "args": ["t"], "env": {"TOKEN": "1"}, "timeout": 5000},
    "web": {"url": "http://h/", "headers": {"X-Team": "a"}},
    "idle": {"command": "i", "disabled": true}}})");
  f.write(f.home + "/.cursor/mcp.json", R"({"mcpServers": {
    "time": {"command": "uvx", "args": ["t"], "env": {"TOKEN": "2"}, "timeout": 9000,
             "denyTools": ["x"], "disabled": false},
    "web": {"url": "http://h/", "headers": {"X-Team": "b"}},
    "idle": {"command": "i", "timeout": 4000}}})");
  f.write(f.home + "/.gemini/settings.json", R"({"mcpServers": {
    "time": {"command": "uvx", "args": ["t"], "env": {"TOKEN": "3"}, "timeout": 5000, "trust": true},
    "web": {"httpUrl": "http://h/other"}}})");
  const auto found = find_client_configs(f.home, f.cwd, false);
  std::vector<std::string> all;
  for (const ImportedServer &server : import_servers(found, {})) {
    std::string text = server.name + " " + std::to_string(server.places.size());
    if (!server.same_as.empty()) text += " like " + server.same_as;
    for (const std::string &key : server.differences) text += " " + key;
    all.push_back(text);
  }
  CHECK(all == std::vector<std::string>{"time 3", "web 2", "idle 0",
                                        "time-2 0 like time denyTools timeout",
                                        "web-2 0 like web headers.X-Team", "idle-2 1", "web-3 1"});
  std::vector<std::string> variables;
  const std::string text = import_profile(found, &variables);
  INFO(text);
  const Profile profile = good({{"file", "i.toml", text}});
  std::string enabled;
  for (const ServerDef &server : profile.servers)
    if (!server.disabled) enabled += server.name + " ";
  CHECK(enabled == "time web idle-2 web-3 ");
  CHECK(has(text, "# starts the same program as time (differs in: denyTools, timeout)\n"));
  CHECK(variables == std::vector<std::string>{"TIME_TOKEN from " + f.home + "/.claude.json"});
}
