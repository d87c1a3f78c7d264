// Tests loading valid profiles: sections, layers, other programs' formats, origins and masks.
#include "layers/load.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "layers/profile_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

TEST_CASE("an empty profile has the default values") {
  const Profile profile = good({{"file", "a.toml", ""}});
  CHECK(profile.servers.empty());
  CHECK(profile.naming.separator == "__");
  CHECK(profile.naming.prefix);
  CHECK(profile.limits.message_bytes == 64u << 20);
  CHECK(profile.server_name == "bulkhead");
  CHECK(profile.notes.empty());
  CHECK(good({}).servers.empty());
}

TEST_CASE("mcpServers is read as in Claude Desktop, Claude Code and Cursor") {
  const Profile profile = good({{"file", "mcp.json", R"({
    "mcpServers": {
      "weather": {
        "command": "node", "args": ["weather-server.js"],
        "env": { "API_KEY": "${WEATHER_API_KEY}" }
      },
      "github": {
        "command": "npx", "args": ["-y", "@modelcontextprotocol/server-github"],
        "env": { "GITHUB_TOKEN": "${env:GITHUB_TOKEN}" },
        "allowTools": ["list_issues", "create_issue"],
        "denyTools": ["merge_pull_request"]
      },
      "remote": { "type": "http", "url": "https://example.com/mcp",
                  "headers": { "X-Team": "a", "Authorization": "Bearer ${TOKEN}" } },
      "old": { "type": "sse", "url": "http://127.0.0.1:9/sse" }
    }
  })"}});
  REQUIRE(names(profile) == "weather github remote old");
  const ServerDef &weather = profile.servers[0];
  CHECK(weather.type == "stdio");
  CHECK(weather.command == "node");
  CHECK(weather.args == std::vector<std::string>{"weather-server.js"});
  CHECK(weather.env.at("API_KEY") == "v-WEATHER_API_KEY");
  CHECK_FALSE(weather.allow_tools.has_value());
  CHECK(weather.origin.line == 3);
  CHECK(weather.origin.file == "mcp.json");
  CHECK(weather.origin.layer == "file");
  const ServerDef &github = profile.servers[1];
  CHECK(github.allow_tools->size() == 2);
  CHECK(github.deny_tools == std::vector<std::string>{"merge_pull_request"});
  CHECK(github.env.at("GITHUB_TOKEN") == "v-GITHUB_TOKEN");
  const ServerDef &remote = profile.servers[2];
  CHECK(remote.type == "http");
  CHECK(remote.headers.at("Authorization") == "Bearer v-TOKEN");
  CHECK(profile.servers[3].type == "sse");
}

TEST_CASE("VS Code files are read: servers, inputs, comments, trailing commas, settings.json") {
  const std::string text = R"({
    // what VS Code writes
    "inputs": [ { "id": "x", "type": "promptString", "password": true, }, ],
    "servers": {
      /* one */ "a": { "type": "stdio", "command": "run", "args": [], },
      "b": { "type": "http", "url": "http://localhost:1/mcp", "gallery": true },
    },
  })";
  const Profile profile = good({{"file", ".vscode/mcp.json", text}});
  CHECK(names(profile) == "a b");
  CHECK(profile.servers[0].origin.line == 5);
  REQUIRE(profile.notes.size() == 1);
  CHECK(has(profile.notes[0], ".vscode/mcp.json:6: server \"b\""));
  CHECK(has(profile.notes[0], "gallery"));
  CHECK(names(good({{"f", "s.json", R"({"mcp": )" + text + "}"}})) == "a b");
  CHECK(names(good({{"f", "s.json", R"({"mcp.servers": {"c": {"command": "x"}}})"}})) == "c");
  CHECK(names(good({{"f", "bom.json", "\xEF\xBB\xBF{\"servers\":{}}"}})).empty());
}

TEST_CASE("Gemini CLI's keys are read") {
  const Profile profile = good({{"file", "settings.json", R"({"mcpServers": {
    "g": { "httpUrl": "https://e.com/mcp", "timeout": 30000, "trust": true,
           "includeTools": ["a"], "excludeTools": ["b"], "description": "d" },
    "h": { "url": "https://e.com/sse" } }})"}});
  REQUIRE(names(profile) == "g h");
  CHECK(profile.servers[0].type == "http");
  CHECK(profile.servers[0].url == "https://e.com/mcp");
  CHECK(profile.servers[0].timeout_ms == 30000u);
  CHECK(profile.servers[0].allow_tools == std::vector<std::string>{"a"});
  CHECK(profile.servers[0].deny_tools == std::vector<std::string>{"b"});
  REQUIRE(profile.notes.size() == 1);
  CHECK(has(profile.notes[0], "trust, description"));
}

TEST_CASE("Codex and Copilot keys are read") {
  const Profile profile = good({{"file", "config.toml", R"(
[mcp_servers.a]
url = "https://e.com"
bearer_token_env_var = "TOK"
http_headers = { X-A = "1" }
startup_timeout_sec = 2.5
tool_timeout_sec = 60
enabled_tools = ["x"]
[mcp_servers.b]
type = "local"
command = "c"
tools = ["*"]
)"}});
  REQUIRE(names(profile) == "a b");
  CHECK(profile.servers[0].headers.at("Authorization") == "Bearer v-TOK");
  CHECK(profile.servers[0].headers.at("X-A") == "1");
  CHECK(profile.servers[0].connect_timeout_ms == 2500u);
  CHECK(profile.servers[0].timeout_ms == 60'000u);
  CHECK(profile.servers[1].type == "stdio");
  CHECK_FALSE(profile.servers[1].allow_tools.has_value());
}

TEST_CASE("a TOML file may have every section") {
  const Profile profile = good({{"file", "/etc/bh/a.toml", R"(
schema = "bulkhead.profile/1"
plugin_dirs = ["/opt/p", "plugins", "~/p"]
state_dir = "~/state"
[gateway]
name = "mine"
metrics_listen = "[::1]:9464"
[naming]
separator = ":"
prefix = "never"
scheme = "gw"
long_names = "error"
max_length = 100
aliases = { old = "files__read", "a.b" = "x" }
[expose]
prompts = false
[limits]
message_bytes = 1_048_576
page_items = 50
[connectors]
stdio = "connector-stdio"
vsock = "./vsock.so"
[transports.http]
plugin = "transport-http"
listen = "127.0.0.1:8808"
path = "/mcp"
required = false
sha256 = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
deep = { list = [1, 2.5, true, "x"], token = "${env:TOK}", other = "${keep}" }
[tools.files]
plugin = "builtin-files"
[policy]
plugin = "policy-pass"
[telemetry.log]
plugin = "./log.so"
[services.http]
plugin = "http-client"
[mcpServers.s]
command = "c"
session = "per-client"
max_in_flight = 7
connect_timeout = 500
tool_timeouts = { slow = 100000 }
[mcpServers.v]
type = "vsock"
url = "vsock://3:5002"
)"}});
  CHECK(profile.plugin_dirs == std::vector<std::string>{"/opt/p", "/etc/bh/plugins", "/home/u/p"});
  CHECK(profile.state_dir == "/home/u/state");
  CHECK(profile.server_name == "mine");
  CHECK(profile.metrics_listen == "[::1]:9464");
  CHECK(profile.naming.separator == ":");
  CHECK_FALSE(profile.naming.prefix);
  CHECK(profile.naming.scheme == "gw");
  CHECK_FALSE(profile.naming.shorten);
  CHECK(profile.naming.max_length == 100);
  CHECK(profile.naming.aliases ==
        decltype(profile.naming.aliases){{"a.b", "x"}, {"old", "files__read"}});
  CHECK_FALSE(profile.expose.prompts);
  CHECK(profile.expose.tools);
  CHECK(profile.limits.message_bytes == 1u << 20);
  CHECK(profile.limits.page_items == 50);
  CHECK(profile.connectors.at("vsock") == "/etc/bh/vsock.so");
  REQUIRE(profile.transports.size() == 1);
  const PluginUse &http = profile.transports[0];
  CHECK(http.id == "http");
  CHECK(http.plugin == "transport-http");
  CHECK_FALSE(http.required);
  CHECK(http.sha256 == std::string(64, 'a'));
  CHECK(http.config_json ==
        R"({"listen":"127.0.0.1:8808","path":"/mcp","deep":{"list":[1,2.5,true,"x"],)"
        R"("token":"v-TOK","other":"${keep}"}})");
  CHECK(profile.tools.at(0).id == "files");
  CHECK(profile.policies.at(0).id == "policy");
  CHECK(profile.telemetry.at(0).plugin == "/etc/bh/log.so");
  CHECK(profile.services.at(0).plugin == "http-client");
  REQUIRE(names(profile) == "s v");
  CHECK(profile.servers[0].session == SessionScope::per_client);
  CHECK(profile.servers[0].max_in_flight == 7);
  CHECK(profile.servers[0].connect_timeout_ms == 500u);
  CHECK(profile.servers[0].tool_timeouts_ms.at("slow") == 100'000u);
  CHECK(profile.servers[1].type == "vsock");
}

TEST_CASE("a JSON file may have the profile's other sections") {
  const Profile profile = good({{"file", "p.json", R"({
    "$schema": "x", "naming": {"separator": "/"}, "limits": {"sessions": 3},
    "transports": {"http": {"plugin": "t", "n": 12345678901234567890}},
    "mcpServers": {} })"}});
  CHECK(profile.naming.separator == "/");
  CHECK(profile.limits.sessions == 3);
  CHECK(profile.transports[0].config_json == R"({"n":12345678901234567890})");
}

TEST_CASE("layers are merged, servers are replaced, and values record their layer") {
  const ProfileLayer builtin{"builtin", "", R"(
[transports.http]
plugin = "transport-http"
listen = "127.0.0.1:8808"
[tools.files]
plugin = "builtin-files"
[policy]
plugin = "policy-pass"
[limits]
sessions = 10
page_items = 20
[mcpServers.a]
command = "old"
args = ["x"]
[mcpServers.b]
command = "b"
)"};
  const ProfileLayer file{"file", "u.json", R"({
    "transports": {"http": {"path": "/x"}},
    "limits": {"sessions": 11},
    "policies": {"mine": {"plugin": "p2"}},
    "mcpServers": {"a": {"command": "new"}, "files": {"command": "own"}}})"};
  const ProfileLayer line{"command line", "", "[transports.http]\nlisten = \"127.0.0.1:0\"\n"};
  const Profile profile = good({builtin, file, line});
  CHECK(names(profile) == "a b files");
  CHECK(profile.servers[0].command == "new");
  CHECK(profile.servers[0].args.empty());
  CHECK(profile.servers[0].origin.layer == "file");
  CHECK(profile.servers[1].origin.layer == "builtin");
  CHECK(profile.limits.sessions == 11);
  CHECK(profile.limits.page_items == 20);
  CHECK(profile.transports.at(0).config_json == R"({"listen":"127.0.0.1:0","path":"/x"})");
  REQUIRE(profile.policies.size() == 1);
  CHECK(profile.policies[0].id == "mine");
  CHECK(profile.tools.empty());
  REQUIRE(profile.notes.size() == 1);
  CHECK(has(profile.notes[0], "replaces the tools plugin"));
  const auto listen = shown(profile, "transports.http.listen");
  CHECK(listen.value == "127.0.0.1:0");
  CHECK(listen.origin.layer == "command line");
  CHECK(listen.origin.line == 2);
  CHECK(shown(profile, "transports.http.path").origin.layer == "file");
  CHECK(shown(profile, "limits.sessions").value == "11");
  CHECK(shown(profile, "limits.page_items").origin.layer == "builtin");
  CHECK(shown(profile, "limits.header_bytes").origin.layer == "default");
  CHECK(shown(profile, "limits.header_bytes").value == "32768");
}

TEST_CASE("a different plugin with the same name does not inherit the configuration") {
  const Profile profile =
      good({{"builtin", "", "[transports.x]\nplugin = \"a\"\nlisten = \"l\"\n"},
            {"file", "u.toml", "[transports.x]\nplugin = \"b\"\npath = \"p\"\n"}});
  CHECK(profile.transports.at(0).plugin == "b");
  CHECK(profile.transports.at(0).config_json == R"({"path":"p"})");
}

TEST_CASE("a higher layer can disable a plugin") {
  const ProfileLayer builtin{"builtin", "", "[tools.x]\nplugin = \"a\"\n"};
  CHECK(good({builtin, {"file", "u.toml", "[tools.x]\nenabled = false\n"}}).tools.empty());
  CHECK(good({builtin, {"file", "u.toml", "[tools.x]\ndisabled = true\n"}}).tools.empty());
  CHECK(good({builtin, {"file", "u.toml", "[tools.x]\nenabled = true\n"}}).tools.size() == 1);
}

TEST_CASE("references have several forms and defaults, and are expanded only in certain keys") {
  const Profile profile = good({{"file", "a.toml", R"(
[mcpServers.a]
command = "${HOME}/bin"
args = ["${env:X}"]
cwd = "${Y}"
[mcpServers.a.env]
A = "x${env:ONE}y${TWO}z"
B = "${unset_1:-dflt}"
C = "${env:unset_2:-}"
D = "$NOT $$ {x} }"
E = "${ONE:-unused}"
F = "${NESTED}"
[mcpServers.b]
url = "https://${HOST}/p?k=${KEY}"
)"}},
                               {{"NESTED", "${ONE}"}});
  const ServerDef &a = profile.servers.at(0);
  CHECK(a.command == "${HOME}/bin");
  CHECK(a.args.at(0) == "${env:X}");
  CHECK(a.cwd == "${Y}");
  CHECK(a.env.at("A") == "xv-ONEyv-TWOz");
  CHECK(a.env.at("B") == "dflt");
  CHECK(a.env.at("C").empty());
  CHECK(a.env.at("D") == "$NOT $$ {x} }");
  CHECK(a.env.at("E") == "v-ONE");
  CHECK(a.env.at("F") == "${ONE}");
  CHECK(profile.servers.at(1).url == "https://v-HOST/p?k=v-KEY");
}

TEST_CASE("variables of a disabled server may be unset") {
  const Profile profile = good({{"file", "a.json", R"({"mcpServers": {
    "a": {"command": "c", "env": {"T": "${unset_x}"}, "disabled": true},
    "b": {"url": "https://${unset_y}/", "enabled": false},
    "c": {"command": "c", "env": {"T": "${unset_x}"}, "unsupported_stdio": true}}})"}});
  for (const ServerDef &server : profile.servers) CHECK(server.disabled);
  CHECK(profile.servers.size() == 3);
  CHECK(profile.notes.size() == 1);
}

TEST_CASE("timeouts above the maximum are reduced to it, with a note") {
  const Profile profile = good({{"file", "a.toml", R"(
[limits]
timeout_ceiling_ms = 1000
[mcpServers.a]
command = "c"
timeout = 5000
[mcpServers.b]
command = "c"
timeout = 60
)"}});
  CHECK(profile.servers[0].timeout_ms == 1000u);
  CHECK(profile.servers[1].timeout_ms == 60u);
  CHECK(profile.limits.call_timeout_ms == 1000);
  CHECK(profile.limits.request_timeout_ms == 1000);
  REQUIRE(profile.notes.size() == 4);
  CHECK(has(profile.notes[2], "mcpServers.a.timeout: 5000 ms"));
  CHECK(has(profile.notes[3], "less than one second"));
}

TEST_CASE("a connector receives the server's definition as JSON") {
  ServerDef def = good({{"f", "a.json", R"({"mcpServers": {"a": {"command": "c", "args": ["\"\n"],
      "env": {"K": "v"}, "cwd": "/d", "connect_timeout": 5}}})"}})
                      .servers.at(0);
  def.extra["stderr_bytes"] = "10";
  CHECK(def.to_json() ==
        R"({"type":"stdio","command":"c","args":["\"\n"],"env":{"K":"v"},"cwd":"/d",)"
        R"("sandbox":{"mode":"home-read-only","network":true,"memory_bytes":0,"processes":1024,)"
        R"("cache_bytes":10737418240},)"
        R"("connect_timeout_ms":5,"stderr_bytes":10})");
  const ServerDef http = good({{"f", "a.toml",
                                "[mcpServers.h]\nurl = \"http://h/\"\n"
                                "bearerToken = \"t\"\n"}})
                             .servers.at(0);
  CHECK(http.to_json() ==
        R"({"type":"http","url":"http://h/","headers":{"Authorization":"Bearer t"}})");
}

TEST_CASE("the files of all layers, and those that would replace them, are the gateway's own") {
  ProfileLayer base{"file", "/etc/b/base.json", "{}"}, project{"project", "/repo/.mcp.json", "{}"};
  base.absent = {"/home/u/base.toml", "/home/u/base.json"};
  project.project = true;
  const Profile p = good({base, {"file", "/home/u/p.toml", ""}, project});
  CHECK(p.own_paths == std::vector<std::string>{"/etc/b/base.json", "/home/u/base.toml",
                                                "/home/u/base.json", "/home/u/p.toml"});
}

TEST_CASE("a server's sandbox, start and pool keys are read") {
  const Profile p = good({{"file", "/etc/b/p.toml", R"(
[isolation]
mode = "require"
[mcpServers.a]
command = "c"
sandbox = "strict"
sandbox_paths = { read = ["~/r", "rel"], write = ["/w/../x"] }
network = false
memory_bytes = 33554432
cache_bytes = 1048576
processes = 7
start = "lazy"
idle_stop_ms = 5
pool_size = 3
pool_safe_tools = ["t"]
[mcpServers.b]
command = "c"
)"}});
  CHECK(p.isolation.require);
  CHECK(p.own_paths == std::vector<std::string>{"/etc/b/p.toml"});
  const ServerDef &a = p.servers.at(0);
  CHECK(a.sandbox.mode == SandboxMode::strict);
  CHECK(a.sandbox.read == std::vector<std::string>{"/home/u/r", "/etc/b/rel"});
  CHECK(a.sandbox.write == std::vector<std::string>{"/x"});
  CHECK_FALSE(a.sandbox.network);
  CHECK(a.sandbox.memory_bytes == 32u << 20);
  CHECK(a.sandbox.cache_bytes == 1u << 20);
  CHECK(a.sandbox.processes == 7);
  CHECK(a.lazy);
  CHECK(a.idle_stop_ms == 5);
  CHECK(a.pool_size == 3);
  CHECK(a.pool_safe_tools == std::vector<std::string>{"t"});
  CHECK(has(a.to_json(), R"("sandbox":{"mode":"strict","read":["/home/u/r","/etc/b/rel"],)"));
  const ServerDef &b = p.servers.at(1);
  CHECK(b.sandbox == SandboxRules{});
  CHECK_FALSE(b.lazy);
  CHECK(b.pool_size == 1);
}

TEST_CASE("a server's \"sandbox\" table may have a mode and ipc; other members are dropped") {
  const auto rules = [](const std::string &sandbox) {
    return good({{"f", "a.json",
                  R"({"mcpServers":{"a":{"command":"c","sandbox":)" + sandbox + "}}}"}})
        .servers.at(0);
  };
  const ServerDef host = rules(R"({"mode":"strict","ipc":"host"})");
  CHECK(host.sandbox.mode == SandboxMode::strict);
  CHECK(host.sandbox.host_ipc);
  CHECK(has(host.to_json(), R"("ipc":"host"})"));
  CHECK(rules(R"({"ipc":"private"})").sandbox == SandboxRules{});
  const Profile vscode = good({{"f", "a.json", R"({"mcpServers":{"a":{"command":"c",
      "sandbox":{"ipc":"host","filesystem":{}, "network":{}}}}})"}});
  CHECK(vscode.servers.at(0).sandbox.host_ipc);
  CHECK(has(vscode.notes.at(0), R"(; ignored: "filesystem", "network")"));
  const auto wrong = [](const std::string &body) {
    return bad({{"f", "a.json", R"({"mcpServers":{"a":{)" + body + "}}}"}}).at(0).path;
  };
  CHECK(wrong(R"("command":"c","sandbox":{"ipc":"shared"})") == "mcpServers.a.sandbox.ipc");
  CHECK(wrong(R"("command":"c","sandbox":{"mode":"loose"})") == "mcpServers.a.sandbox.mode");
  CHECK(wrong(R"("command":"c","sandbox":{"mode":"off","ipc":"private"})") ==
        "mcpServers.a.sandbox.ipc");
  CHECK(wrong(R"("url":"http://x/","sandbox":{"ipc":"host"})") == "mcpServers.a.sandbox.ipc");
}

TEST_CASE("a limit in a \"sandbox\" table is an error that names the correct key") {
  for (const auto &[member, key] : std::initializer_list<std::pair<std::string, std::string>>{
           {R"("network":false)", "network"},
           {R"("network":true)", "network"},
           {R"("network":"none")", "network"},
           {R"("memory_bytes":33554432)", "memory_bytes"},
           {R"("processes":5)", "processes"},
           {R"("cacheBytes":0)", "cache_bytes"},
           {R"("read":["/x"])", "sandbox_paths"},
           {R"("write":["/x"])", "sandbox_paths"},
           {R"("sandboxPaths":{})", "sandbox_paths"}}) {
    INFO(member);
    const auto errors = bad(
        {{"f", "a.json",
          R"({"mcpServers":{"a":{"command":"c","sandbox":{"mode":"strict",)" + member + "}}}}"}});
    REQUIRE(errors.size() == 1);
    CHECK(has(errors[0].path, "mcpServers.a.sandbox."));
    CHECK(has(errors[0].what, "set \"" + key + "\" in the server instead"));
  }
}

TEST_CASE("a sandbox that is contradictory or has no process is rejected") {
  const auto wrong = [](const std::string &members) {
    const auto errors = bad({{"file", "p.json", R"({"mcpServers":{"a":{)" + members + "}}}"}});
    return errors.at(0).path;
  };
  CHECK(wrong(R"("command":"c","sandbox":"loose")") == "mcpServers.a.sandbox");
  CHECK(wrong(R"("command":"c","sandbox":"off","network":false)") == "mcpServers.a.network");
  CHECK(wrong(R"("command":"c","sandbox":"off","processes":5)") == "mcpServers.a.processes");
  CHECK(wrong(R"("url":"http://x/","sandbox":"strict")") == "mcpServers.a.sandbox");
  CHECK(wrong(R"("url":"http://x/","pool_size":2)") == "mcpServers.a.pool_size");
  CHECK(wrong(R"("command":"c","sandbox_paths":{"reed":[]})") == "mcpServers.a.sandbox_paths.reed");
  CHECK(wrong(R"("command":"c","idle_stop_ms":5)") == "mcpServers.a.idle_stop_ms");
  CHECK(wrong(R"("command":"c","pool_size":0)") == "mcpServers.a.pool_size");
  CHECK(wrong(R"("command":"c","memory_bytes":1)") == "mcpServers.a.memory_bytes");
  CHECK(wrong(R"("command":"c","cache_bytes":1)") == "mcpServers.a.cache_bytes");
  CHECK(wrong(R"("command":"c","sandbox":"off","cache_bytes":0)") == "mcpServers.a.cache_bytes");
  // VS Code's `sandbox` table is dropped with a note.
  const Profile p = good(
      {{"file", "p.json", R"({"mcpServers":{"a":{"command":"c","sandbox":{"network":{}}}}})"}});
  CHECK(p.servers.at(0).sandbox == SandboxRules{});
  CHECK(p.notes.size() == 1);
}
