// Tests the location, code and message of each type of profile error.
#include <catch2/catch.hpp>

#include "layers/load.hpp"
#include "layers/profile_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

struct Case {
  const char *text;   // the content of a.toml, or of a.json if it begins with '{'
  const char *start;  // "line:column: path: " of the first error
  const char *part;   // a part of the error's message
  const char *code;
};

void check(const Case &c) {
  const std::string file = c.text[0] == '{' ? "a.json" : "a.toml";
  const auto errors = bad({{"file", file, c.text}});
  const std::string first = to_string(errors.at(0));
  INFO(c.text);
  INFO(first);
  CHECK(first.starts_with(file + ":" + c.start));
  CHECK(errors[0].what.find(c.part) != std::string::npos);
  CHECK(errors[0].code == c.code);
  CHECK(first.ends_with(std::string(" [") + c.code + "]"));
}

constexpr const char *kSchema = "invalid_schema";
constexpr const char *kUnknown = "unknown_key";

}  // namespace

TEST_CASE("texts that are not JSON or TOML are errors") {
  const Case cases[] = {
      {"{", "1:2: ", "not valid JSON", "invalid_json"},
      {"{\n \"a\": 1\n \"b\": 2}", "3:2: ", "comma", "invalid_json"},
      {"{\"a\": nope}", "1:8: ", "not valid JSON", "invalid_json"},
      {"{\"a\": 1e99999}", "1:7: ", "exponent", "invalid_json"},
      {R"({"a\ude0d": 1})", "1:4: ", "surrogate", "invalid_json"},
      {"{\"a\": 1}}", "1:9: ", "not valid JSON", "invalid_json"},
      {"{\"a\": \"\xFF\"}", "1:", "encoding", "invalid_json"},
      {"a = 1\n[/x]\n", "2:2: ", "expected bare key", "invalid_toml"},
      {"[[ ;x]]\n", "1:4: ", "expected bare key", "invalid_toml"},
      {"a = 1\nb\u039c = 2\n", "2:2: ", "not valid TOML", "invalid_toml"},
      {"x = \n", "1:", "not valid TOML", "invalid_toml"},
      {"[a]\nx = 1\nx = 2\n", "3:", "not valid TOML", "invalid_toml"},
      {"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a."
       "a."
       "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a."
       "a.a."
       "a.a.a.a.a.a.a.a.a.a.a.a = 1",
       "1: ", "dots", "invalid_toml"},
  };
  for (const Case &c : cases) check(c);
  const auto nul = bad({{"file", "a.json", std::string("{}\0x", 4)}});
  CHECK(has(nul[0].what, "NUL"));
  CHECK(bad({{"file", "a.json", "[]"}})[0].code == kSchema);
  CHECK(bad({{"file", "a.json", ""}})[0].code == "invalid_json");
  CHECK(bad({{"file", "a.toml", std::string(kProfileBytes + 1, ' ')}})[0].code == "too_large");
}

TEST_CASE("the address of /metrics is validated") {
  for (const char *wrong : {"9464", "localhost:9464", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000",
                            "[::1:9464", "unix:/x"}) {
    const auto errors =
        bad({{"file", "a.toml", "[gateway]\nmetrics_listen = \"" + std::string(wrong) + "\"\n"}});
    REQUIRE(errors.size() == 1);
    CHECK(has(errors[0].what, "127.0.0.1:9464"));
  }
}

TEST_CASE("the error for an unknown key names the most similar known key") {
  const Case cases[] = {
      {"[nameing]\n", "1:2: nameing: ", "did you mean \"naming\"?", kUnknown},
      {"[naming]\nseperator = \"x\"\n", "2:1: naming.seperator: ", "\"separator\"", kUnknown},
      {"[limits]\nsessons = 1\n", "2:1: limits.sessons: ", "\"sessions\"", kUnknown},
      {"[expose]\ntool = true\n", "2:1: expose.tool: ", "\"tools\"", kUnknown},
      {"[gateway]\nNAME2 = \"\"\n", "2:1: gateway.NAME2: ", "\"name\"", kUnknown},
      {"[mcpServers.a]\ncomand = \"x\"\ncommand = \"x\"\n",
       "2:1: mcpServers.a.comand: ", "\"command\"", kUnknown},
      {"{\"mcpServers\": {\"a\": {\n  \"command\": \"x\", \"alowTools\": []}}}",
       "2:19: mcpServers.a.alowTools: ", "did you mean \"allowTools\"?", kUnknown},
      {"{\"mcp\": {\"server\": {}}}", "1:10: mcp.server: ", "\"servers\"", kUnknown},
      {"zzzzzzzzz = 1\n", "1:1: zzzzzzzzz: ", "Known keys: schema", kUnknown},
  };
  for (const Case &c : cases) check(c);
}

TEST_CASE("wrong types and values are errors") {
  const Case cases[] = {
      {"schema = \"x\"\n", "1:10: schema: ", "bulkhead.profile/1", kSchema},
      {"naming = 1\n", "1:10: naming: ", "expected a table, found a number", kSchema},
      {"[naming]\nseparator = \"\"\n", "2:13: naming.separator: ", "must not be empty", kSchema},
      {"[naming]\nseparator = \" \"\n", "2:13: naming.separator: ", "white space", kSchema},
      {"[naming]\nseparator = \"a b\"\n", "2:13: naming.separator: ", "white space", kSchema},
      {"[naming]\nprefix = \"maybe\"\n", "2:10: naming.prefix: ", "always, never", kSchema},
      {"[naming]\nscheme = \"1x\"\n", "2:10: naming.scheme: ", "a letter", kSchema},
      {"[naming]\nscheme = \"file\"\n", "2:10: naming.scheme: ", "meaning", kSchema},
      {"[naming]\nmax_length = 5\n", "2:14: naming.max_length: ", "24 to 256", kSchema},
      {"[naming]\naliases = 3\n", "2:11: naming.aliases: ", "expected a table", kSchema},
      {"[naming.aliases]\nold = \"a b\"\n", "2:7: naming.aliases.old: ", "white space", kSchema},
      {"[naming.aliases]\nold = \"\"\n", "2:7: naming.aliases.old: ", "not be empty", kSchema},
      {"[naming.aliases]\na = \"b\"\nb = \"fs__c\"\n",
       "2:5: naming.aliases.a: ", "not to another alias", kSchema},
      {"[expose]\ntools = \"yes\"\n", "2:9: expose.tools: ", "true or false", kSchema},
      {"[limits]\nsessions = 0\n", "2:12: limits.sessions: ", "from 1 to 1000000", kSchema},
      {"[limits]\nsessions = -1\n", "2:12: limits.sessions: ", "found -1", kSchema},
      {"[limits]\nsessions = 1.5\n", "2:12: limits.sessions: ", "whole number", kSchema},
      {"[limits]\nsessions = \"9\"\n", "2:12: limits.sessions: ", "found a string", kSchema},
      {"[limits]\nretry_min_ms = 50000\n", "1:1: limits: ", "retry_max_ms", kSchema},
      {"[limits]\nwrite_queue_bytes = 2000\n", "1:1: limits: ", "message_bytes", kSchema},
      {"[connectors]\nx = 1\n", "2:5: connectors.x: ", "a string", kSchema},
      {"plugin_dirs = \"x\"\n", "1:15: plugin_dirs: ", "an array of strings", kSchema},
      {"[transports.x]\nlisten = \"a\"\n", "1:13: transports.x: ", "\"plugin\" is missing",
       kSchema},
      {"[tools.x]\nplugin = \"a\"\ngrants = [\"network:0\"]\n",
       "3:10: tools.x.grants: ", "allowed: control, network, network:PORT", kSchema},
      {"[policies.x]\nplugin = \"a\"\ngrants = [\"control\"]\n",
       "3:10: policies.x.grants: ", "allowed: network, network:PORT", kSchema},
      {"[transports.x]\nplugin = \"a\"\ngrants = [\"network\"]\n",
       "3:10: transports.x.grants: ", "allowed: control", kSchema},
      {"[transports.\"a b\"]\nplugin = \"a\"\n",
       "1:13: transports.\"a b\": ", "the instance is invalid", kSchema},
      {"[tools.a__b]\nplugin = \"a\"\n", "1:8: tools.a__b: ", "separator", kSchema},
      {"[transports.x]\nplugin = \"a\"\nsha256 = \"00\"\n", "3:10: transports.x.sha256: ", "64 hex",
       kSchema},
      {"[transports.x]\nplugin = \"a\"\nwhen = 1979-05-27\n", "3:8: transports.x.when: ", "dates",
       kSchema},
      {"[transports.x]\nplugin = \"a\"\nt = \"${env:unset_1}\"\n",
       "3:5: transports.x.t: ", "unset_1", "missing_env_var"},
      {"[policies]\na={plugin=\"a\"}\nb={plugin=\"a\"}\nc={plugin=\"a\"}\nd={plugin=\"a\"}\n"
       "e={plugin=\"a\"}\nf={plugin=\"a\"}\ng={plugin=\"a\"}\nh={plugin=\"a\"}\ni={plugin=\"a\"}\n",
       "1:2: policies: ", "more than 8", kSchema},
      {"[policy]\nplugin = \"a\"\n[policies.policy]\nplugin = \"a\"\n",
       "3:11: policies.policy: ", "same as", kSchema},
      {"{\"a\": 1, \"a\": 2}", "1:10: ", "used twice", kSchema},
  };
  for (const Case &c : cases) check(c);
}

TEST_CASE("servers with conflicting members are errors") {
  const Case cases[] = {
      {"{\"mcpServers\": []}", "1:16: mcpServers: ", "expected a table", kSchema},
      {"{\"mcpServers\": {\"a\": 1}}", "1:22: mcpServers.a: ", "a table", kSchema},
      {"{\"mcpServers\": {\"a\": {}}}", "1:17: mcpServers.a: ", "\"command\" or a \"url\"",
       kSchema},
      {"[mcpServers.a]\ncommand = \"x\"\nurl = \"http://h\"\n",
       "3:1: mcpServers.a.url: ", "not both", kSchema},
      {"[mcpServers.a]\ncommand = \"\"\n", "2:1: mcpServers.a.command: ", "empty", kSchema},
      {"[mcpServers.a]\ncommand = [\"x\"]\n", "2:11: mcpServers.a.command: ", "a string", kSchema},
      {"[mcpServers.a]\ncommand = \"x\"\nargs = \"y\"\n", "3:8: mcpServers.a.args: ", "an array",
       kSchema},
      {"[mcpServers.a]\ncommand = \"x\"\nargs = [\"y\", 1]\n",
       "3:14: mcpServers.a.args[1]: ", "put it in quotes", kSchema},
      {"[mcpServers.a]\ncommand = \"x\"\nenv = { P = 3000 }\n",
       "3:13: mcpServers.a.env.P: ", "quotes", kSchema},
      {"[mcpServers.a]\ncommand = \"x\"\nheaders = { P = \"1\" }\n",
       "3:1: mcpServers.a.headers: ", "only a server with a url", kSchema},
      {"[mcpServers.a]\nurl = \"http://h\"\nenv = { P = \"1\" }\n",
       "3:1: mcpServers.a.env: ", "only a server with a command", kSchema},
      {"[mcpServers.a]\ntype = \"sse\"\ncommand = \"x\"\n",
       "2:1: mcpServers.a.type: ", "cannot be used with a command", kSchema},
      {"[mcpServers.a]\ntype = \"stdio\"\nurl = \"http://h\"\n",
       "2:1: mcpServers.a.type: ", "cannot be used with a url", kSchema},
      {"[mcpServers.a]\ntype = \"ws\"\nurl = \"http://h\"\n",
       "2:1: mcpServers.a.type: ", "allowed: stdio, http", kSchema},
      {"[mcpServers.a]\nurl = \"http://h\"\nhttpUrl = \"http://h\"\n",
       "3:1: mcpServers.a.httpUrl: ", "duplicates \"url\" on line 2", kSchema},
      {"[mcpServers.a]\ncommand = \"x\"\nenvFile = \".env\"\n",
       "3:1: mcpServers.a.envFile: ", "not supported", kSchema},
      {"[mcpServers.a]\ncommand = \"x\"\nenabled = true\ndisabled = true\n",
       "3:1: mcpServers.a.enabled: ", "contradicts", kSchema},
      {"[mcpServers.a]\ncommand = \"x\"\ntimeout = 0\n",
       "3:11: mcpServers.a.timeout: ", "1 to 86400000", kSchema},
      {"[mcpServers.a]\ncommand = \"x\"\nsession = \"x\"\n",
       "3:11: mcpServers.a.session: ", "shared, per-client", kSchema},
      {"{\"servers\": {\"a\": {\"command\": \"x\"}},\n\"mcpServers\": {\"a\": {\"command\": "
       "\"x\"}}}",
       "2:16: mcpServers.a: ", "already defined on line 1", kSchema},
      {"[tools.a]\nplugin = \"x\"\n[mcpServers.a]\ncommand = \"x\"\n",
       "3:13: mcpServers.a: ", "a tools plugin has the same name", kSchema},
  };
  for (const Case &c : cases) check(c);
}

TEST_CASE("references that cannot be resolved are errors") {
  const auto env = [](const std::string &value) {
    return bad({{"file", "a.toml",
                 "[mcpServers.weather]\ncommand = \"c\"\nenv.KEY = '" + value + "'\n"}})
        .at(0);
  };
  const ProfileError wrong = env("a${secret:x}b");
  CHECK(wrong.code == kSchema);
  CHECK(wrong.line == 3);
  CHECK(wrong.path == "mcpServers.weather.env.KEY");
  CHECK(has(wrong.what, "\"weather\""));
  CHECK(env("${unset_x}${secret:x}").code == "missing_env_var");
  CHECK(has(env("${secret:x}").what, "use ${env:NAME}"));
  CHECK(has(env("${1x}").what, "not a valid reference"));
  CHECK(has(env("${}").what, "not a valid reference"));
  CHECK(has(env("${a").what, "without"));
  CHECK(has(env("${a:-${b}}").what, "nested"));
  const auto broken = bad({{"f", "a.toml", "[mcpServers.a]\ncommand = \"c\"\nenv.K = \"${X}\"\n"}},
                          {{"X", std::string("a\0b", 3)}});
  CHECK(has(broken.at(0).what, "NUL"));
}

TEST_CASE("reserved headers, and values that would split a request, are errors") {
  const auto header = [](const std::string &line, std::map<std::string, std::string> values = {}) {
    return bad({{"file", "a.toml",
                 "[mcpServers.a]\nurl = \"http://h\"\n[mcpServers.a.headers]\n" + line + "\n"}},
               std::move(values))
        .at(0);
  };
  for (const char *name :
       {"accept", "Accept", "MCP-Session-Id", "last-event-id", "HOST", "Content-Length",
        "transfer-encoding", "Connection", "content-type", "Mcp-Protocol-Version"}) {
    const ProfileError error = header(std::string(name) + " = \"x\"");
    CHECK(has(error.what, "reserved and cannot be configured"));
    CHECK(error.line == 4);
    CHECK(error.path == std::string("mcpServers.a.headers.") + name);
  }
  CHECK(has(header("X = \"a\\r\\nHost: b\"").what, "control character"));
  CHECK(has(header("\"a b\" = \"x\"").what, "not a valid HTTP header name"));
  CHECK(has(header("\"\" = \"x\"").what, "not a valid HTTP header name"));
  CHECK(has(header("X = \"" + std::string(16385, 'x') + "\"").what, "larger than 16384"));
  CHECK(has(header("X-a = \"1\"\nx-A = \"2\"").what, "duplicates the header"));
  const auto twice = bad({{"f", "a.toml",
                           "[mcpServers.a]\nurl = \"http://h\"\nbearerToken = \"t\"\n"
                           "headers = { authorization = \"x\" }\n"}});
  CHECK(has(twice.at(0).what, "duplicates the header"));
}

TEST_CASE("invalid urls are errors") {
  const std::pair<const char *, const char *> cases[] = {
      {"ftp://h/", "http://"},
      {"h/mcp", "http://"},
      {"http://", "no host"},
      {"http:///x", "no host"},
      {"http://:80/", "no host"},
      {"http://h:0/", "port"},
      {"http://h:65536/", "port"},
      {"http://h:x/", "port"},
      {"http://u:p@h/", "headers"},
      {"http://u@h/", "headers"},
      {"http://h/a b", "white"},
      {"http://h/\\n", "white"},
      {"http://[::1/", "']'"},
      {"http://[::1]x/", "port"},
      {"http://[z]/", "IPv6"},
      {"http://h/#f", "'#'"},
      {"", "http://"},
      {"http://h\u00e4/", "percent"},
  };
  for (const auto &[url, part] : cases) {
    INFO(url);
    const auto errors =
        bad({{"f", "a.toml", std::string("[mcpServers.a]\nurl = \"") + url + "\"\n"}});
    CHECK(has(errors.at(0).what, part));
    CHECK(errors[0].line == 2);
  }
  for (const char *url : {"http://h", "https://h:443/a?b=c", "HTTP://[::1]:80/", "http://h?x"})
    good({{"f", "a.toml", std::string("[mcpServers.a]\nurl = \"") + url + "\"\n"}});
}

TEST_CASE("all errors are reported in file order, at most a hundred") {
  const auto errors = bad({{"file", "a.toml", R"([naming]
separator = ""
bogus = 1
[limits]
sessions = 0
[mcpServers.a]
command = 1
env = { X = "${secret:a}${secret:b}" }
[mcpServers.b]
url = "nope"
)"}});
  std::string lines;
  for (const ProfileError &error : errors) lines += std::to_string(error.line) + " ";
  CHECK(lines == "2 3 5 7 8 8 10 ");
  std::string many = "[limits]\n";
  for (int i = 0; i < 300; ++i) many += "unknown_" + std::to_string(i) + " = 1\n";
  CHECK(bad({{"file", "a.toml", many}}).size() == 100);
}

TEST_CASE("errors of two invalid layers are reported") {
  const auto errors = bad({{"builtin", "", "x ="}, {"file", "a.json", "{"}});
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].file == "builtin");
  CHECK(errors[0].code == "invalid_toml");
  CHECK(errors[1].code == "invalid_json");
}

TEST_CASE("bearer_token_env_var takes the name of a variable, and its error message says so") {
  const auto said = [](const std::string &name) {
    const std::string text =
        "[mcpServers.a]\nurl = \"http://h\"\nbearer_token_env_var = \"" + name + "\"\n";
    return bad({{"f", "a.toml", text}}).at(0);
  };
  CHECK(has(said("A:-b").what, "expected the name of an environment variable"));
}

TEST_CASE("a list of known keys is a separate sentence") {
  const std::string what = bad({{"f", "a.toml", "[limits]\nfoobarfoobar = 1\n"}}).at(0).what;
  CHECK(has(what, "unknown key \"foobarfoobar\". Known keys: "));
}

TEST_CASE("editor prompts are replaced with variables; a missing one disables only this server") {
  const std::string text = R"({"inputs": [{"id": "api-key", "type": "promptString"}], "servers": {
    "vs": {"command": "x", "env": {"K": "a${input:api-key}b"}, "args": ["--k=${input:api-key}", "${HOME}"]},
    "web": {"url": "https://h.example/${input:tok}", "headers": {"X": "${input:tok}"}},
    "arg": {"command": "x", "args": ["${input:vs_x}"]},
    "other": {"command": "y"}}})";
  std::map<std::string, std::optional<std::string>> set{{"VS_API_KEY", "s3"}, {"WEB_TOK", "t"}};
  ProfileEnvironment some;
  some.getenv = [&](const std::string &name) { return set[name]; };
  auto loaded = load_profile({{"f", "mcp.json", text}}, some);
  REQUIRE(std::holds_alternative<Profile>(loaded));
  Profile profile = std::get<Profile>(loaded);
  REQUIRE(names(profile) == "vs web arg other");
  CHECK(profile.servers[0].env.at("K") == "as3b");
  CHECK(profile.servers[0].args == std::vector<std::string>{"--k=s3", "${HOME}"});
  CHECK(profile.servers[1].url == "https://h.example/t");
  CHECK(profile.servers[2].disabled);
  CHECK(profile.servers[2].disabled_reason ==
        "the environment variable ARG_VS_X is not set; set it to the value of ${input:vs_x}");
  CHECK_FALSE(profile.servers[3].disabled);
  CHECK(profile.notes.size() == 1);
  for (const Profile::Shown &value : profile.shown) CHECK_FALSE(has(value.value, "s3"));
  set.clear();
  loaded = load_profile({{"f", "mcp.json", text}}, some);
  REQUIRE(std::holds_alternative<Profile>(loaded));
  profile = std::get<Profile>(loaded);
  for (std::size_t i = 0; i < 3; ++i) CHECK(profile.servers[i].disabled);
  CHECK_FALSE(profile.servers[3].disabled);
  CHECK(profile.notes.size() == 3);
}

TEST_CASE("a variable that is missing in several values of a server is reported once") {
  ProfileEnvironment none;
  none.getenv = [](const std::string &) { return std::optional<std::string>(); };
  const auto loaded = load_profile({{"f", "mcp.json", R"({"mcpServers": {"w": {"command": "x",
    "args": ["--key", "${input:weather-key}"],
    "env": {"A": "${input:w-key}", "B": "${env:W_KEY}", "C": "${NOT_SET}"}}}})"}},
                                   none);
  REQUIRE(std::holds_alternative<Profile>(loaded));
  CHECK(std::get<Profile>(loaded).servers[0].disabled_reason ==
        "the environment variable W_WEATHER_KEY is not set; set it to the value of "
        "${input:weather-key}; the environment variable W_KEY is not set; set it to the value of "
        "${input:w-key}; the environment variable NOT_SET is not set; set it, or write "
        "${env:NOT_SET:-default}");
}

TEST_CASE("the settings of Codex and Zed are recognized, and `import` is suggested") {
  struct Row {
    const char *file, *text, *program;
  };
  const Row rows[] = {
      {"/h/.codex/config.toml", "model = \"g\"\n[mcp_servers.a]\ncommand = \"x\"\n", "Codex"},
      {"/h/.config/zed/settings.json", R"({"theme": "x", "context_servers": {"a": {}}})", "Zed"},
      {"/p/.zed/settings.json", R"({"context_servers": {"a": {"command": "x"}}})", "Zed"}};
  for (const Row &row : rows) {
    const auto errors = bad({{"file", row.file, row.text}});
    REQUIRE(errors.size() == 1);
    INFO(errors[0].what);
    CHECK(has(errors[0].what, "the settings file of " + std::string(row.program)));
    CHECK(has(errors[0].what, "`bulkhead import`"));
  }
  CHECK_FALSE(has(bad({{"file", "p.toml", "modle = 1\n"}})[0].what, "import"));
}

TEST_CASE("an error in a TOML string mentions the closing quote") {
  for (const char *text : {"[mcpServers.a]\ncommand = \"npx\nargs = []\n", "a = 'x\nb = 1\n",
                           "a = \"x", "a = \"\"\"x"}) {
    INFO(text);
    CHECK(has(bad({{"file", "p.toml", text}})[0].what, "; a closing quote may be missing"));
  }
  CHECK_FALSE(has(bad({{"file", "p.toml", "a = \"\\q\"\n"}})[0].what, "closing quote"));
  CHECK_FALSE(has(bad({{"file", "p.toml", "a = [1,"}})[0].what, "closing quote"));
}

TEST_CASE("another program's settings without servers cause one message") {
  std::string text = "{\"mcp\": {}";
  for (int i = 0; i < 50; ++i) text += ",\n\"editor.x" + std::to_string(i) + "\": 1";
  const auto errors = bad({{"file", "settings.json", text + "}"}});
  REQUIRE(errors.size() == 1);
  CHECK(has(errors[0].what, "bulkhead import"));
}

TEST_CASE("servers in other clients' files are read, and their other keys cause one note") {
  std::string code = "{\"mcp\": {\"servers\": {\"a\": {\"command\": \"x\"}}, \"discovery\": true}";
  for (int i = 0; i < 50; ++i) code += ",\n\"editor.x" + std::to_string(i) + "\": 1";
  const std::pair<const char *, std::string> files[] = {
      {"/h/.config/Code/User/settings.json", code + "}"},
      {"/h/.gemini/settings.json",
       R"({"theme": "x", "selectedAuthType": "y", "tools": {"core": ["ls"]}, "telemetry": {"enabled": true},
           "security": {"auth": {}}, "mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "x"}}})"},
      {"/h/.claude.json",
       R"({"numStartups": 3, "projects": {"/p": {"mcpServers": {"b": {"command": "y"}}}}, "tipsHistory": {},
           "mcpServers": {"a": {"command": "x"}}})"},
      {"/h/claude_desktop_config.json",
       R"({"globalShortcut": "", "mcpServers": {"a": {"command": "x"}}})"},
      {"/h/mine.json", R"({"theme": "x", "mcpServers": {"a": {"command": "x"}}})"}};
  for (const auto &[file, text] : files) {
    INFO(file);
    const Profile profile = good({{"file", file, text}});
    CHECK(names(profile) == "a");
    REQUIRE(profile.notes.size() == 1);
    CHECK(has(profile.notes[0], "keys of another program are ignored: "));
    CHECK(has(profile.notes[0], file));
  }
}

TEST_CASE("errors in the profile's own sections are reported even if the file has servers") {
  CHECK(bad({{"f", "a.json", R"({"namig": {}, "mcpServers": {}})"}})[0].code == "unknown_key");
  CHECK(bad({{"f", "a.json", R"({"limits": {"sesions": 1}, "mcpServers": {}})"}})[0].code ==
        "unknown_key");
  CHECK(bad({{"f", "/h/.gemini/settings.json", R"({"limits": {"x": 1}, "mcpServers": {}})"}})[0]
            .code == "unknown_key");
  CHECK(bad({{"f", "a.json", R"({"theme": 1, "mcpServer": {}})"}}).size() == 2);
  CHECK(bad({{"f", "a.toml", "theme = 1\n[mcpServers.a]\ncommand = \"x\""}}).size() == 1);
}

TEST_CASE("depth and number of values are limited") {
  std::string deep = "{\"transports\": {\"x\": {\"plugin\": \"p\", \"v\": ";
  deep += std::string(70, '[') + std::string(70, ']') + "}}}";
  CHECK(bad({{"f", "a.json", deep}})[0].code == "too_large");
  CHECK(bad({{"f", "a.json", std::string(3'000'000, '[')}})[0].code == "too_large");
  std::string wide = "{\"x\": [";
  for (std::size_t i = 0; i < kProfileValues; ++i) wide += "1,";
  CHECK(bad({{"f", "a.json", wide + "1]}"}})[0].code == "too_large");
  CHECK(bad({{"f", "a.toml", "x = " + std::string(5000, '[')}})[0].code == "invalid_toml");
}

TEST_CASE("files that are missing, unreadable, folders or too large are errors") {
  CHECK(read_profile_file("/nowhere/x.json").error().code == BH_E_NOT_FOUND);
  CHECK(has(read_profile_file("/nowhere/x.json").error().text, "/nowhere/x.json: no such file"));
  CHECK(has(read_profile_file("/nowhere/x.json").error().text, "[file_not_found]"));
  CHECK(read_profile_file("/").error().code == BH_E_IO);
  CHECK(has(read_profile_file("/").error().text, "[unreadable]"));
  CHECK(read_profile_file("/dev/zero").error().code == BH_E_LIMIT);
  const auto empty = read_profile_file("/dev/null", "user");
  REQUIRE(empty.has_value());
  CHECK(empty->text.empty());
  CHECK(empty->name == "user");
}

// A multi-line string in TOML can end with one or two quotes that belong to its text. A parser that
// mistakes them for the start of another string ignores the rest of the line.
TEST_CASE("no text in a project file bypasses the limit of dotted keys") {
  std::string key = "b";
  for (int i = 0; i < 400'000; ++i) key += ".b";
  for (const char *before :
       {"", "a = \"\"\"z\"\"\"\"", "a = \"\"\"z\"\"\"\"\"", "a = '''z''''", "a = '''z'''''",
        "a = \"\"\"\\\"\"\"\"\"", "a = [\"\"\"\n\"\"\"\"]", "a = 1"}) {
    const std::string comma = *before == 0 ? "" : ", ";
    const auto errors = bad({{"file", "p.toml", "x = {" + (before + comma) + key + " = 1}\n"}});
    INFO(before);
    CHECK(has(errors.at(0).what, "more than 100 dots"));
  }
  for (const std::string &text :
       {"x = {a = \"\"\"z\"\"\"\"}\n" + key + " = 1\n", "x = {a = '''z''''}\n[" + key + "]\n"})
    CHECK(has(bad({{"file", "p.toml", text}}).at(0).what, "more than 100 dots"));
}

TEST_CASE("a server is disabled if a variable that it uses is not set") {
  const struct {
    const char *definition, *why;
  } cases[] = {
      {"command = 'c'\nenv.K = 'a${unset_key}b'",
       "the environment variable unset_key is not set; set it, or write ${env:unset_key:-default}"},
      {"command = 'c'\nenv = { A = '${env:unset_a}', B = '${unset_b}', C = '${unset_a}' }",
       "the environment variable unset_a is not set; set it, or write ${env:unset_a:-default}; the "
       "environment variable unset_b is not set; set it, or write ${env:unset_b:-default}"},
      {"url = 'https://${unset_host}/'", "the environment variable unset_host is not set; "},
      {"url = 'https://h'\nheaders.X = '${unset_x}'", "variable unset_x is not set; "},
      {"url = 'https://h'\ntype = 'sse'\nheaders.X = '${unset_x}'", "unset_x is not set; "},
      {"url = 'https://h'\nbearerToken = '${unset_x}'", "unset_x is not set; "},
      {"url = 'https://h'\nbearer_token_env_var = 'unset_x'",
       "the environment variable unset_x is not set; set it, or use bearerToken"},
      // Variables that are set to invalid values.
      {"command = 'c'\nenv.K = '${LATIN}'", "the environment variable LATIN is not UTF-8 text"},
      {"url = 'https://h'\nbearer_token_env_var = 'LATIN'", "variable LATIN is not UTF-8 text"},
      {"url = '${PLAIN}'", "url, set by the environment: "},
      {"url = 'https://h'\nheaders.X = '${LINES}'",
       "headers.X, set by the environment: the header value contains a control character"},
      {"url = 'https://h'\nheaders.X = '${LONG}'", "the value is larger than 16384 bytes"},
      {"url = 'https://h'\nbearerToken = '${EMPTY}'", "the token is empty"},
      {"url = 'https://h'\nbearer_token_env_var = 'EMPTY'", "the token is empty"},
  };
  const std::map<std::string, std::string> values = {{"LATIN", "\xC0\x80"},
                                                     {"PLAIN", "s3cret"},
                                                     {"LINES", "s3cret\nb"},
                                                     {"LONG", std::string(16385, 'x')},
                                                     {"EMPTY", ""}};
  for (const auto &[definition, why] : cases) {
    INFO(definition);
    const Profile profile = good({{"file", "a.toml",
                                   std::string("[mcpServers.a]\n") + definition +
                                       "\n[mcpServers.b]\ncommand = 'c'\nenv.K = '${KEY}'\n"}},
                                 values);
    REQUIRE(names(profile) == "a b");
    CHECK(profile.servers[0].disabled);
    CHECK(profile.servers[0].unmet);
    CHECK(has(profile.servers[0].disabled_reason, why));
    CHECK_FALSE(has(profile.servers[0].disabled_reason, "s3cret"));
    CHECK_FALSE(profile.servers[1].disabled);
    CHECK(profile.servers[1].env.at("K") == "v-KEY");
    REQUIRE(profile.notes.size() == 1);
    CHECK(profile.notes[0] ==
          "a.toml:1: server \"a\" is disabled: " + profile.servers[0].disabled_reason);
  }
  // An error in the file is reported whether or not variables are set.
  const auto both = bad({{"file", "a.toml",
                          "[mcpServers.a]\nurl = 'https://h'\nheaders.X = '${unset_x}'\n"
                          "timeout = -1\n"}});
  REQUIRE(both.size() == 1);
  CHECK(both[0].path == "mcpServers.a.timeout");
  // A disabled server may use unset variables.
  const Profile off =
      good({{"file", "a.toml",
             "[mcpServers.a]\nurl = '${unset_x}'\nbearer_token_env_var = 'unset_y'\n"
             "disabled = true\n"}});
  CHECK_FALSE(off.servers.at(0).unmet);
  CHECK(off.servers[0].disabled_reason.empty());
  CHECK(off.notes.empty());
}

TEST_CASE("variables that plugins and the corporation's servers use must be set") {
  const auto load = [](ProfileUse use, const std::vector<ProfileLayer> &layers) {
    ProfileEnvironment some = environment();
    some.use = use;
    return load_profile(layers, some);
  };
  const auto errors = [&](ProfileUse use, const std::vector<ProfileLayer> &layers) {
    std::string out;
    const auto loaded = load(use, layers);
    if (const auto *all = std::get_if<std::vector<ProfileError>>(&loaded))
      for (const ProfileError &error : *all) out += error.path + " " + error.code + "\n";
    return out;
  };
  ProfileLayer corp{"corp", "corp.toml",
                    "[mcpServers.c]\nurl = 'https://h'\nbearer_token_env_var = 'unset_c'\n"
                    "[mcpServers.d]\ncommand = 'c'\nenv.K = '${unset_d}'\n"};
  corp.corp = true;
  const std::vector<ProfileLayer> layers{
      corp,
      {"file", "a.toml",
       "[transports.t]\nplugin = 'x'\ntoken = '${env:unset_1}'\n"
       "[policies.p]\nplugin = 'x'\nheaders = { A = 'Bearer ${env:unset_2}' }\n"
       "[telemetry.l]\nplugin = 'x'\nlist = ['${env:unset_3}']\n"
       "[tools.o]\nplugin = 'x'\nkey = '${env:unset_4}'\n"
       "[mcpServers.a]\nurl = '${unset_a}'\n"}};
  const std::string servers =
      "mcpServers.c.bearer_token_env_var missing_env_var\nmcpServers.d.env.K missing_env_var\n";
  const std::string others =
      "policies.p.headers.A missing_env_var\ntelemetry.l.list[0] missing_env_var\n"
      "tools.o.key missing_env_var\n";
  CHECK(errors(ProfileUse::all, layers) ==
        servers + "transports.t.token missing_env_var\n" + others);
  CHECK(errors(ProfileUse::but_transports, layers) == servers + others);

  auto looked = load(ProfileUse::none, layers);
  REQUIRE(std::holds_alternative<Profile>(looked));
  const Profile profile = std::get<Profile>(looked);
  for (const ServerDef &server : profile.servers) CHECK(server.unmet);
  CHECK(profile.servers.size() == 3);
  CHECK(profile.policies.at(0).config_json == R"({"headers":{"A":"Bearer ${env:unset_2}"}})");
  CHECK(profile.notes.size() == 7);
  CHECK(has(profile.notes[0], "a.toml:3: transports.t.token: the environment variable unset_1"));
  // An error in the file is reported even if the profile is only displayed.
  CHECK(errors(ProfileUse::none, {{"f", "a.toml", "[tools.o]\nplugin = 'x'\nk = '${env:1}'\n"}}) ==
        "tools.o.k invalid_schema\n");
}

TEST_CASE("text from a file cannot control the terminal in an error") {
  const auto errors = bad({{"file", "a.json",
                            "{\"a\xC2\x9B"
                            "2Jb\xE2\x80\xAE\": 1}"}});
  const std::string text = to_string(errors.at(0));
  INFO(text);
  CHECK(has(text, "unknown key \"a?2Jb?\""));
  CHECK(text.find("\xC2\x9B") == text.npos);
  CHECK(text.find("\xE2\x80\xAE") == text.npos);
}
