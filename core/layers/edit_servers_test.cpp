#include "layers/edit_servers.hpp"

#include <catch2/catch.hpp>

#include "layers/profile_test_util.hpp"

using namespace bulkhead;

namespace {

ProfileLayer toml(std::string text) {
  return {"file", "profile.toml", std::move(text)};
}
ProfileLayer json(std::string text) {
  return {"file", "mcp.json", std::move(text)};
}

NewServer quoted() {
  NewServer out;
  out.name = "a.b";
  out.command = "C:\\dir with \"quotes\"\\x";
  out.args = {"-y", "#no comment", "[x]", "two\nlines", "${HOME}"};
  out.env = {{"KEY", "va'lue"}, {"odd key", "\"\"\""}};
  return out;
}

}  // namespace

TEST_CASE("adding and then removing a server restores the file") {
  const std::string comments = "# mine\nschema = \"bulkhead.profile/1\" # one\n\n";
  const ProfileLayer files[] = {
      toml(""),
      toml(comments),
      toml(comments + "[mcpServers.one]\ncommand = \"x\"\n"),
      toml(comments + "[mcpServers.one]\nargs = [\n  \"[mcpServers.two]\",\n  [\"n\"],\n]\n"
                      "command = \"\"\"\n[mcpServers.three]\n\"\"\"\n[limits]\nsessions = 4\n"),
      json("{}"),
      json("{\"mcpServers\": {}}"),
      json("{\n  // why\n  \"mcpServers\": {\n    \"one\": {\"command\": \"}\"}\n  }\n}\n"),
      json("{\"limits\": {\"sessions\": 4}}"),
      json("{\n  \"servers\": {\"one\": {\"command\": \"x\"}}\n}"),
      json("\xEF\xBB\xBF{\"mcpServers\": {\"one\": {\"command\": \"x\"}}}"),
      toml("\xEF\xBB\xBF[mcpServers.one]\ncommand = \"x\"\n"),
  };
  for (const ProfileLayer &file : files) {
    INFO(file.text);
    const std::size_t count = servers_of_file(file)->size();
    for (const NewServer &server :
         {quoted(), NewServer{"two", "y", {}, "/tmp", {}, "", {}},
          NewServer{
              "web", "", {}, "", {}, "https://h/mcp", {{"Authorization", "Bearer ${env:T}"}}}}) {
      ProfileLayer next = file;
      const auto added = file_with_server(file, server);
      REQUIRE(added.has_value());
      INFO(*added);
      next.text = *added;
      CHECK(servers_of_file(next)->size() == count + 1);
      const auto again = file_with_server(next, server);
      REQUIRE_FALSE(again.has_value());
      CHECK(again.error().code == BH_E_DENIED);
      const auto removed = file_without_server(next, server.name);
      REQUIRE(removed.has_value());
      if (count != 0 || file.file.ends_with(".toml")) CHECK(*removed == file.text);
      next.text = *removed;
      CHECK(servers_of_file(next)->size() == count);
    }
  }
}

TEST_CASE("an added server loads with the given values") {
  for (const ProfileLayer &file : {toml("[mcpServers.one]\ncommand = \"x\"\n"),
                                   json("{\"mcpServers\": {\"one\": {\"command\": \"x\"}}}")}) {
    ProfileLayer next = file;
    next.text = file_with_server(file, quoted()).value();
    INFO(next.text);
    const auto loaded = load_profile({next}, {});
    REQUIRE(std::holds_alternative<Profile>(loaded));
    const auto &servers = std::get<Profile>(loaded).servers;
    REQUIRE(servers.size() == 2);
    const ServerDef &got = servers[0].name == "a.b" ? servers[0] : servers[1];
    CHECK(got.command == quoted().command);
    REQUIRE(got.args.size() == 5);
    CHECK(got.args[1] == "#no comment");
    CHECK(got.args[3] == "two\nlines");
    CHECK(got.env.at("KEY") == "va'lue");
    CHECK(got.env.at("odd key") == "\"\"\"");
  }
}

TEST_CASE("removing a server removes only the lines of its own tables") {
  const std::string before = "# first\n[mcpServers.keep]\ncommand = \"k\"\n\n";
  const std::string gone =
      "[mcpServers.\"go\"]\ncommand = \"g\" # its own\n\n# of its env\n[mcpServers . go . env]\nA "
      "= \"1\"\n";
  const std::string after = "\n# about the last\n[mcpServers.last]\ncommand = \"l\"\n# the end";
  const auto text = file_without_server(toml(before + gone + after), "go");
  REQUIRE(text.has_value());
  CHECK(*text == before + "# of its env\n" + after);
  CHECK(servers_of_file(toml(*text)).value() == std::vector<std::string>{"keep", "last"});
}

TEST_CASE("a JSON member is removed together with one comma, at any position") {
  const std::string a = R"("a": {"command": "x", "args": ["]", "}", "//", "\""]})";
  const std::string b = R"("b": {"command": "y"})";
  const std::string c = R"("c": {"command": "z"})";
  const auto all = [](const std::string &inner) { return "{ \"mcpServers\": { " + inner + " } }"; };
  const ProfileLayer file = json(all(a + ", " + b + " , " + c));
  CHECK(file_without_server(file, "a").value() == all(b + " , " + c));
  CHECK(file_without_server(file, "b").value() == all(a + ", " + c));
  CHECK(file_without_server(file, "c").value() == all(a + ", " + b));
  const ProfileLayer commented =
      json("{\"mcpServers\": {\n  // a is needed\n  " + a + ",\n  /* , */ " + b + "\n}}");
  CHECK(file_without_server(commented, "a").value() ==
        "{\"mcpServers\": {\n  // a is needed\n  /* , */ " + b + "\n}}");
  const ProfileLayer slash = json("{\"mcpServers\": {" + a + " /*/ , */, " + b + "}}");
  CHECK(file_without_server(slash, "a").value() == "{\"mcpServers\": {" + b + "}}");
}

TEST_CASE("text that cannot be edited is reported and left unchanged") {
  const auto code = [](const Result<std::string> &result) {
    REQUIRE_FALSE(result.has_value());
    return result.error().code;
  };
  const NewServer server = quoted();
  CHECK(code(file_with_server(toml("x = = 1"), server)) == BH_E_INVALID);
  CHECK(code(file_with_server(json("{\"mcpServers\": "), server)) == BH_E_INVALID);
  CHECK(code(file_with_server(toml("mcpServers = { one = { command = \"x\" } }\n"), server)) ==
        BH_E_UNSUPPORTED);
  CHECK(code(file_without_server(toml("mcpServers = { one = { command = \"x\" } }\n"), "one")) ==
        BH_E_UNSUPPORTED);
  CHECK(code(file_without_server(toml("[mcpServers]\none.command = \"x\"\n"), "one")) ==
        BH_E_UNSUPPORTED);
  CHECK(code(file_with_server(json("{\"mcpServers\": []}"), server)) == BH_E_UNSUPPORTED);
  CHECK(code(file_without_server(toml(""), "one")) == BH_E_NOT_FOUND);
}

TEST_CASE("a server can be disabled and enabled again without changing the rest of the file") {
  const std::string other = "[mcpServers.other]\ncommand = \"y\"\ndisabled = false # on purpose\n";
  struct Row {
    ProfileLayer file;
    std::string disabled;
  };
  const Row rows[] = {
      {toml("# mine\n[mcpServers.one] # it\ncommand = \"x\"\n[mcpServers.one.env]\nA = \"1\"\n\n" +
            other),
       "# mine\n[mcpServers.one] # it\ndisabled = true\ncommand = \"x\"\n[mcpServers.one.env]\nA = "
       "\"1\"\n\n" +
           other},
      {toml("[mcpServers.one]"), "[mcpServers.one]\ndisabled = true\n"},
      {toml("[mcpServers.one]\ncommand = \"x\"\nenabled = true # yes\n"),
       "[mcpServers.one]\ncommand = \"x\"\nenabled = false # yes\n"},
      {toml("[mcpServers]\none = { command = \"\u00e9\", disabled = false }\n"),
       "[mcpServers]\none = { command = \"\u00e9\", disabled = true }\n"},
      {toml("[mcpServers]\none = {command = \"x\"}\n"),
       "[mcpServers]\none = { disabled = true,command = \"x\"}\n"},
      {json("{\n  // why\n  \"mcpServers\": {\n    \"one\": {\"command\": \"x\"}\n  }\n}\n"),
       "{\n  // why\n  \"mcpServers\": {\n    \"one\": {\"disabled\": true, \"command\": \"x\"}\n  "
       "}\n}\n"},
      {json("{\"servers\": {\"one\": {\"command\": \"\u00e9\", \"disabled\": false}}}"),
       "{\"servers\": {\"one\": {\"command\": \"\u00e9\", \"disabled\": true}}}"},
  };
  for (const Row &row : rows) {
    INFO(row.file.text);
    const auto off = file_with_disabled(row.file, "one", true);
    REQUIRE(off.has_value());
    CHECK(*off == row.disabled);
    ProfileLayer next = row.file;
    next.text = *off;
    CHECK(*file_with_disabled(next, "one", true) == *off);
    const auto on = file_with_disabled(next, "one", false);
    REQUIRE(on.has_value());
    CHECK(*file_with_disabled(row.file, "one", false) == row.file.text);
    next.text = *on;
    CHECK(*file_with_disabled(next, "one", true) == *off);
  }
  CHECK(file_with_disabled(rows[0].file, "none", true).error().code == BH_E_NOT_FOUND);
  const auto word = file_with_disabled(toml("mcpServers.one.command = \"x\"\n"), "one", true);
  REQUIRE_FALSE(word.has_value());
  CHECK(word.error().code == BH_E_UNSUPPORTED);
  CHECK(file_with_disabled(json(R"({"servers": {"one": {"disabled": "no"}}})"), "one", true)
            .error()
            .code == BH_E_UNSUPPORTED);
}
