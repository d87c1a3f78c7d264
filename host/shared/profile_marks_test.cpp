#include "shared/profile_marks.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

const std::string test_key(32, 'k');

ServerDef stdio_server(const std::string &name) {
  ServerDef def;
  def.name = name;
  def.type = "stdio";
  def.command = "npx";
  def.args = {"-y", "@scope/server"};
  def.env = {{"TOKEN", "first"}};
  return def;
}

Profile two_servers() {
  Profile out;
  out.servers = {stdio_server("one"), stdio_server("two")};
  PluginUse policy;
  policy.id = "default";
  policy.plugin = "policy-rules";
  policy.config_json = R"({"layers":[]})";
  out.policies = {policy};
  return out;
}

std::vector<std::string> differs(const Profile &a, const Profile &b, const std::string &folder_a,
                                 const std::string &folder_b) {
  return different_parts(marks_of(a, folder_a, test_key), marks_of(b, folder_b, test_key));
}

using Parts = std::vector<std::string>;

}  // namespace

TEST_CASE("equal profiles have equal marks even if origins and transports differ") {
  Profile a = two_servers(), b = two_servers();
  b.servers[0].origin = {"file", "/b.toml", 7};
  b.policies[0].origin = {"user", "/c.toml", 3};
  b.servers[1].restarts = 2;
  b.limits.first_list_wait_ms = 8'000;
  PluginUse transport;
  transport.id = "http";
  b.transports.push_back(transport);
  b.notes.push_back("a note");
  CHECK(differs(a, b, "/x", "/y").empty());
}

TEST_CASE("the names of differing parts are returned") {
  const Profile a = two_servers();
  Profile b = two_servers();
  b.servers[1].env["TOKEN"] = "second";
  b.policies[0].config_json = R"({"layers":[1]})";
  b.limits.call_timeout_ms = 1;
  b.servers.push_back(stdio_server("three"));
  CHECK(differs(a, b, "/x", "/x") ==
        Parts{"limits", "policy default", "server two", "server three"});
  CHECK(differs(b, a, "/x", "/x") ==
        Parts{"limits", "policy default", "server three", "server two"});
}

TEST_CASE("marks depend on the key and do not contain short values") {
  const Profile a = two_servers();
  const auto marks = marks_of(a, "/x", test_key), others = marks_of(a, "/x", std::string(32, 'o'));
  CHECK(different_parts(marks, others).size() == marks.size());
  for (const auto &[part, mark] : marks) {
    INFO(part);
    CHECK(mark.size() == 32);
    CHECK(mark.find("first") == std::string::npos);
  }
}

TEST_CASE("the working directory is compared only if a server or tools plugin depends on it") {
  Profile a = two_servers();
  CHECK(differs(a, a, "/x", "/y").empty());  // npx starts in an empty private directory

  Profile script = a;
  script.servers[0].command = "python3";
  script.servers[0].args = {"server.py"};
  CHECK(differs(script, script, "/x", "/y") == Parts{"working directory"});
  script.servers[0].disabled = true;
  CHECK(differs(script, script, "/x", "/y").empty());
  script.servers[0].disabled = false;
  script.servers[0].cwd = "/srv";
  CHECK(differs(script, script, "/x", "/y").empty());

  Profile files = a;
  PluginUse use;
  use.id = "files";
  use.plugin = "builtin-files";
  use.config_json = "{}";
  files.tools = {use};
  CHECK(differs(files, files, "/x", "/y") == Parts{"working directory"});
  files.tools[0].config_json = R"({"workspaces":[{"path":"/srv/a"},{"path":"./b"}]})";
  CHECK(differs(files, files, "/x", "/y") == Parts{"working directory"});
  files.tools[0].config_json = R"({"workspaces":[{"path":"/srv/a"},{"path":"src","write":true}]})";
  CHECK(differs(files, files, "/x", "/y") == Parts{"working directory"});
  files.tools[0].config_json = R"({"workspaces":[{"path":"/srv/a"},{"path":"/srv/b"}]})";
  CHECK(differs(files, files, "/x", "/y").empty());
}

TEST_CASE("servers that are not approved are not compared; other disabled servers are") {
  const Profile plain = two_servers();
  for (const auto &[reason, same] :
       {std::pair("not approved: run bulkhead approve", true),
        std::pair("its definition is invalid: x", false), std::pair("", false)}) {
    Profile repository = plain;
    for (const char *name : {"shop", "stock"}) {
      repository.servers.push_back(stdio_server(name));
      repository.servers.back().disabled = true;
      repository.servers.back().disabled_reason = reason;
    }
    INFO(reason);
    CHECK(differs(plain, repository, "/x", "/x") ==
          (same ? Parts{} : Parts{"server shop", "server stock"}));
    CHECK(unapproved_servers(repository) == (same ? Parts{"shop", "stock"} : Parts{}));
  }
}

TEST_CASE("only environment variables that affect servers are compared") {
  const Profile a = two_servers();
  const auto before = marks_of(a, "/x", test_key);
  const std::string path = std::getenv("PATH"), home = std::getenv("HOME");
  ::setenv("UNRELATED_VARIABLE", "1", 1);
  const char *lang = std::getenv("LANG");
  const std::string language = lang == nullptr ? "" : lang;
  ::setenv("LANG", "xx_XX", 1);
  ::setenv("PATH", (path + ":/nowhere").c_str(), 1);
  CHECK(different_parts(before, marks_of(a, "/x", test_key)).empty());
  lang == nullptr ? ::unsetenv("LANG") : ::setenv("LANG", language.c_str(), 1);
  ::setenv("HOME", "/other", 1);
  CHECK(different_parts(before, marks_of(a, "/x", test_key)) == Parts{"environment variable HOME"});
  ::setenv("HOME", home.c_str(), 1);
  // With a different PATH, the command no longer resolves to the same file.
  Profile shell = a;
  shell.servers[0].command = "sh";
  const auto found = marks_of(shell, "/x", test_key);
  ::setenv("PATH", "/nowhere", 1);
  CHECK(different_parts(found, marks_of(shell, "/x", test_key)) ==
        (different_parts(before, marks_of(a, "/x", test_key)).empty()
             ? Parts{"program of server one"}
             : Parts{"program of server one", "program of server two"}));
  CHECK_FALSE(any_in_files(different_parts(found, marks_of(shell, "/x", test_key))));
  CHECK(selected_program(shell.servers[0]).empty());
  ::setenv("PATH", path.c_str(), 1);
  CHECK(selected_program(shell.servers[0]).ends_with("/sh"));
}

TEST_CASE("relative paths of policies and telemetry, and locked settings are compared") {
  Profile a = two_servers();
  a.policies[0].config_json = R"({"rules_file":"rules.json","mode":"deny"})";
  CHECK(differs(a, a, "/x", "/y") == Parts{"working directory"});
  a.policies[0].config_json = R"({"rules_file":"/etc/rules.json","mode":"deny"})";
  CHECK(differs(a, a, "/x", "/y").empty());
  Profile locked = a;
  locked.server_holds.push_back({{"mcpServers", "*"}, true, "the corporation's layer"});
  CHECK(differs(a, locked, "/x", "/x") == Parts{"locked settings"});
  locked.server_holds[0].says = "another text";
  CHECK(differs(locked, locked, "/x", "/x").empty());
  const auto before = marks_of(a, "/x", test_key);
  ::setenv("SSL_CERT_FILE", "/other/ca.pem", 1);
  CHECK(different_parts(before, marks_of(a, "/x", test_key)) ==
        Parts{"environment variable SSL_CERT_FILE"});
  ::unsetenv("SSL_CERT_FILE");
}

TEST_CASE("only parts that are defined in files are applied by a reload") {
  CHECK(any_in_files({"environment variable HOME", "limits"}));
  CHECK(any_in_files({"server environment", "working directory"}));
  CHECK_FALSE(any_in_files({"environment variable HOME", "working directory"}));
  CHECK_FALSE(any_in_files({}));
}

TEST_CASE("the servers that run in the working directory are named") {
  Profile profile = two_servers();
  CHECK(servers_in_folder(profile).empty());
  for (ServerDef &server : profile.servers) server.command = "/usr/bin/server";
  CHECK(servers_in_folder(profile) == Parts{"one", "two"});
  profile.servers[0].cwd = "/srv";
  CHECK(servers_in_folder(profile) == Parts{"two"});
}

TEST_CASE("a long list of parts is shortened") {
  CHECK(describe_parts({"a"}) == "a");
  CHECK(describe_parts({"a", "b", "c"}) == "a, b, c");
  CHECK(describe_parts({"a", "b", "c", "d", "e"}) == "a, b, c and 2 more");
}
