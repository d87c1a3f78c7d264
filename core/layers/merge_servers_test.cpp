// Tests importing servers from MCP clients into a profile that already has servers.
#include "layers/merge_servers.hpp"

#include <catch2/catch.hpp>

#include "layers/edit_servers.hpp"
#include "layers/profile_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

using MergeTexts = std::vector<std::string>;

ImportedServer imported_server(const std::string &name, const std::string &keys) {
  ImportedServer out;
  out.name = out.base = name;
  out.toml = "# From a client\n[mcpServers." + name + "]\n" + keys;
  return out;
}

// Returns a server with a suffix. `base_keys` are the keys that it would have under the name
// `base`.
ImportedServer suffixed_server(const std::string &name, const std::string &keys,
                               const std::string &base, const std::string &base_keys) {
  ImportedServer out = imported_server(name, keys);
  out.base = base;
  out.base_toml = "[mcpServers." + base + "]\n" + base_keys;
  return out;
}

// Returns "NAME STATE DIFFERENCES" for each server.
MergeTexts merge_states(const ServerMerge &merge) {
  MergeTexts out;
  for (const MergedServer &one : merge.servers) {
    std::string text = one.name + " " + std::string(to_string(one.state));
    for (const std::string &key : one.differences) text += " " + key;
    out.push_back(std::move(text));
  }
  return out;
}

const std::string kClockText =
    "# mine\nschema = \"bulkhead.profile/1\"\n\n"
    "[mcpServers.time]   # the clock\ncommand = \"uvx\"\nargs = [\"time\"]\nsandbox = \"strict\"\n"
    "timeout = 9000\n\n"
    "[mcpServers.web]\nurl = \"http://h/\"\n[mcpServers.web.headers]\nA = \"1\"\nB = \"2\"\n\n"
    "[limits]\nsessions = 4\n";
const ProfileLayer kClockFile{"file", "profile.toml", kClockText};

}  // namespace

TEST_CASE("known servers are left unchanged, and new servers are appended") {
  const std::vector<ImportedServer> imported = {
      imported_server("time", "command = \"uvx\"\nargs = [\"time\"]\n"),
      imported_server("notes", "command = \"n\"\n[mcpServers.notes.env]\nK = \"v\"\n"),
      imported_server("web",
                      "type = \"http\"\nurl = \"http://h/\"\n[mcpServers.web.headers]\nB = \"2\"\n"
                      "A = \"1\"\n"),
      imported_server("far", "url = \"http://far/\"\n")};
  const auto merge = merge_servers(kClockFile, imported, GENERATE(true, false));
  REQUIRE(merge);
  CHECK(merge_states(*merge) == MergeTexts{"time kept", "notes added", "web kept", "far added"});
  CHECK(merge->text == kClockText + "\n" + imported[1].toml + "\n" + imported[3].toml);
  const Profile profile = good({{"file", "p.toml", merge->text}});
  CHECK(names(profile) == "time web notes far");
  CHECK(profile.servers[2].env.at("K") == "v");
}

TEST_CASE("a different definition is reported with its differences and replaced only on request") {
  const std::vector<ImportedServer> imported = {
      imported_server("time",
                      "command = \"uvx\"\nargs = [\"time\", \"--utc\"]\ntimeout_ms = 8000\n"
                      "[mcpServers.time.env]\nTZ = \"x\"\n"),
      imported_server("web",
                      "type = \"sse\"\nurl = \"http://h/\"\n[mcpServers.web.headers]\nA = \"1\"\n"
                      "B = \"3\"\nC = \"4\"\n")};
  const MergeTexts differences = {"args env.TZ timeout", "type headers.B headers.C"};
  const auto kept = merge_servers(kClockFile, imported, false);
  REQUIRE(kept);
  CHECK(merge_states(*kept) ==
        MergeTexts{"time differs " + differences[0], "web differs " + differences[1]});
  CHECK(kept->text == kClockText);
  const auto replaced = merge_servers(kClockFile, imported, true);
  REQUIRE(replaced);
  CHECK(merge_states(*replaced) ==
        MergeTexts{"time replaced " + differences[0], "web replaced " + differences[1]});
  const Profile profile = good({{"file", "p.toml", replaced->text}});
  REQUIRE(names(profile) == "time web");
  CHECK(profile.servers[0].args == MergeTexts{"time", "--utc"});
  CHECK(profile.servers[0].sandbox.mode == SandboxMode::strict);
  CHECK(profile.servers[0].timeout_ms == 8'000);
  CHECK(profile.servers[1].type == "sse");
  CHECK(profile.limits.sessions == 4);
  CHECK(has(replaced->text, "# mine\n"));
}

TEST_CASE("a replaced server keeps the settings that only the profile has") {
  const bool json = GENERATE(false, true);
  const std::string toml =
      "[mcpServers.a]\ncommand = \"old\"\nsandbox = \"strict\"\nnetwork = false\n"
      "denyTools = [\"write_file\"]\nroots = \"off\"\ntimeout = 5000\nenabled = false\n"
      "[mcpServers.a.env]\nOLD = \"1\"\n"
      "[mcpServers.b]\nurl = \"http://old/\"\nallowTools = [\"x\"]\n";
  const std::string text =
      R"({"mcpServers": {"a": {"command": "old", "sandbox": "strict", "network": false,
          "denyTools": ["write_file"], "roots": "off", "timeout": 5000, "enabled": false,
          "env": {"OLD": "1"}}, "b": {"url": "http://old/", "allowTools": ["x"]}}})";
  const ProfileLayer file =
      json ? ProfileLayer{"file", "p.json", text} : ProfileLayer{"file", "p.toml", toml};
  const auto merge = merge_servers(
      file,
      {imported_server("a", "command = \"new\"\ntimeout = 7000\n[mcpServers.a.env]\nNEW = \"2\"\n"),
       imported_server("b", "url = \"http://new/\"\ndisabled = true\n")},
      true);
  REQUIRE(merge);
  CHECK(merge_states(*merge) ==
        MergeTexts{"a replaced command env.OLD env.NEW timeout", "b replaced url"});
  INFO(merge->text);
  const Profile profile = good({{"file", file.file, merge->text}});
  REQUIRE(profile.servers.size() == 2);
  const bool a_first = profile.servers[0].name == "a";
  const ServerDef &a = profile.servers[a_first ? 0 : 1], &b = profile.servers[a_first ? 1 : 0];
  CHECK(a.command == "new");
  CHECK(a.sandbox.mode == SandboxMode::strict);
  CHECK_FALSE(a.sandbox.network);
  CHECK(a.deny_tools == MergeTexts{"write_file"});
  CHECK(a.roots == RootsMode::off);
  CHECK(a.timeout_ms == 7'000);
  CHECK(a.disabled);
  CHECK(a.env.size() == 1);
  CHECK(a.env.at("NEW") == "2");
  CHECK(b.url == "http://new/");
  CHECK(b.allow_tools == MergeTexts{"x"});
  CHECK(b.disabled);
}

TEST_CASE("a number that TOML cannot represent is not kept") {
  const ProfileLayer file{"file", "p.json", R"({"mcpServers": {"a": {"command": "old",
      "roots": "off", "max_in_flight": 98765432109876543210}}})"};
  const auto merge = merge_servers(file, {imported_server("a", "command = \"new\"\n")}, true);
  REQUIRE(merge);
  INFO(merge->text);
  const Profile profile = good({{"file", file.file, merge->text}});
  REQUIRE(profile.servers.size() == 1);
  CHECK(profile.servers[0].command == "new");
  CHECK(profile.servers[0].roots == RootsMode::off);
}

TEST_CASE("a duplicate is disabled only if the profile takes the server that it duplicates") {
  const std::string body = "command = \"t\"\ntimeout = 9000\n";
  ImportedServer first = imported_server("time", "command = \"t\"\n"),
                 second = imported_server("time-2", body);
  second.same_as = "time";
  second.disabled_toml = imported_server("time-2", "disabled = true\n" + body).toml;
  const auto disabled_in = [&](const std::string &profile, bool replace) {
    const auto merge = merge_servers({"file", "p.toml", profile}, {first, second}, replace);
    REQUIRE(merge);
    INFO(merge->text);
    const Profile read = good({{"file", "p.toml", merge->text}});
    for (const ServerDef &server : read.servers) {
      if (server.name == "time-2") return server.disabled;
    }
    FAIL("there is no time-2");
    return false;
  };
  CHECK(disabled_in("", false));
  CHECK(disabled_in("[mcpServers.time]\ncommand = \"t\"\n", false));
  CHECK_FALSE(disabled_in("[mcpServers.time]\ncommand = \"another\"\n", false));
  const std::string enabled = "[mcpServers.time-2]\ncommand = \"old\"\n";
  CHECK_FALSE(disabled_in(enabled, true));
  CHECK(disabled_in(enabled + "disabled = true\n", true));
}

TEST_CASE("a replaced server of another type keeps only the settings that its type can have") {
  const ProfileLayer file{"file", "p.toml",
                          "[mcpServers.a]\ncommand = \"x\"\nnetwork = false\n"
                          "sandbox_paths = [\"/srv\"]\ntimeout = 5000\ndenyTools = [\"t\"]\n"
                          "[mcpServers.b]\nurl = \"http://h/\"\nbearer_token_env_var = \"T\"\n"
                          "protocol = \"2025-06-18\"\n"};
  const auto merge =
      merge_servers(file,
                    {imported_server("a", "url = \"http://h/\"\ntool_timeout_sec = 9\n"),
                     imported_server("b", "command = \"x\"\n")},
                    true);
  REQUIRE(merge);
  INFO(merge->text);
  const Profile profile = good({{"file", "p.toml", merge->text}});
  REQUIRE(names(profile) == "a b");
  CHECK(profile.servers[0].url == "http://h/");
  CHECK(profile.servers[0].deny_tools == MergeTexts{"t"});
  CHECK(profile.servers[0].timeout_ms == 9'000);
  CHECK(profile.servers[1].command == "x");
  CHECK(profile.servers[1].protocol == ProtocolPin::v2025_06_18);
}

TEST_CASE(
    "a server that lacks one of the profile's values is different; a disabled server is not") {
  const std::vector<ImportedServer> imported = {
      imported_server("time", "command = \"uvx\"\n"),
      imported_server(
          "web", "url = \"http://h/\"\ndisabled = true\n[mcpServers.web.headers]\nA = \"1\"\n")};
  const auto merge = merge_servers(kClockFile, imported, false);
  REQUIRE(merge);
  CHECK(merge_states(*merge) == MergeTexts{"time differs args", "web differs headers.B"});
  const auto same = merge_servers(
      {"file", "p.json", R"({"mcpServers": {"a": {"command": "x", "disabled": true}}})"}, {},
      false);
  REQUIRE(same);
  CHECK(same->servers.empty());
  const std::vector<ImportedServer> one = {imported_server("a", "command = \"x\"\n")};
  CHECK(merge_states(*merge_servers(
            {"file", "p.json", R"({"mcpServers": {"a": {"command": "x", "disabled": true}}})"}, one,
            false)) == MergeTexts{"a kept"});
}

TEST_CASE(
    "a server with a suffix is kept under its original name if the profile has its definition") {
  const std::vector<ImportedServer> imported = {
      imported_server("time", "command = \"other\"\n"),
      suffixed_server("time-2", "command = \"uvx\"\nargs = [\"time\"]\n", "time",
                      "command = \"uvx\"\nargs = [\"time\"]\n"),
      suffixed_server("time-3", "command = \"third\"\n", "time", "command = \"third\"\n")};
  const auto merge = merge_servers(kClockFile, imported, false);
  REQUIRE(merge);
  CHECK(merge_states(*merge) ==
        MergeTexts{"time differs command args", "time kept", "time-3 added"});
  // Variables contain the name of the server.
  const auto keys = [](const std::string &command, const std::string &variable) {
    return "command = \"" + command + "\"\nenv = {TOKEN = \"${env:" + variable + "}\"}\n";
  };
  const ProfileLayer hub{
      "file", "p.toml",
      "schema = \"bulkhead.profile/1\"\n[mcpServers.hub]\n" + keys("y", "HUB_TOKEN")};
  const auto named = merge_servers(
      hub,
      {imported_server("hub", keys("x", "HUB_TOKEN")),
       suffixed_server("hub-2", keys("y", "HUB_2_TOKEN"), "hub", keys("y", "HUB_TOKEN")),
       suffixed_server("hub-3", keys("z", "HUB_3_TOKEN"), "hub", keys("z", "HUB_TOKEN"))},
      false);
  REQUIRE(named);
  CHECK(merge_states(*named) == MergeTexts{"hub differs command", "hub kept", "hub-3 added"});
}

TEST_CASE("a JSON profile receives servers as JSON, and rejected servers are omitted") {
  std::vector<ImportedServer> imported = {
      imported_server("b", "command = \"y\"\nargs = [\"1\"]\n[mcpServers.b.env]\nK = \"v\"\n"),
      imported_server("bad", "type = \"ws\"\nurl = \"http://h\"\n"),
      imported_server("c", "command = \"z\"\n")};
  imported[1].refused = "its type";
  const auto merge =
      merge_servers({"file", "p.json",
                     "{\n  // why\n  \"mcpServers\": {\n    \"a\": {\"command\": \"x\"}\n  }\n}\n"},
                    imported, false);
  REQUIRE(merge);
  CHECK(merge_states(*merge) == MergeTexts{"b added", "bad refused", "c added"});
  CHECK(has(merge->text, "// why"));
  const Profile profile = good({{"file", "p.json", merge->text}});
  CHECK(names(profile) == "a b c");
  CHECK(profile.servers[1].env.at("K") == "v");
  // A new profile gets one line for each server, in order.
  const auto fresh = merge_servers({"file", "p.json", "{\n  \"mcpServers\": {\n  }\n}\n"},
                                   {imported[0], imported[2]}, false);
  REQUIRE(fresh);
  CHECK(fresh->text ==
        "{\n  \"mcpServers\": {\n    \"b\": "
        R"({"command":"y","args":["1"],"env":{"K":"v"}})"
        ",\n    \"c\": "
        R"({"command":"z"})"
        "\n  }\n}\n");
  CHECK_FALSE(merge_servers({"file", "p.json", "{ broken"}, imported, false));
  CHECK_FALSE(merge_servers({"file", "p.toml", "a = ["}, imported, false));
}
