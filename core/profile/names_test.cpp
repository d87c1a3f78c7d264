// Tests the validation of server names (requirements A17, F03, G09 and G16). An invalid name does
// not affect other servers.
#include <catch2/catch.hpp>

#include "layers/load.hpp"
#include "layers/profile_test_util.hpp"

using namespace bulkhead;
using namespace bulkhead::test;

namespace {

ProfileLayer with(const std::vector<std::string> &servers, const std::string &naming = "{}") {
  std::string text = "{\"naming\": " + naming + ", \"mcpServers\": {";
  for (const std::string &name : servers)
    text += "\n\"" + name + "\": {\"command\": \"c\"}" + (name == servers.back() ? "" : ",");
  return {"file", "mcp.json", text + "}}"};
}

}  // namespace

TEST_CASE("servers with invalid names are skipped with the reason, and other servers load") {
  const Profile profile = good({with({"", "builtin", "a__b", "good", "sp ace", "a_", "co:lon"})});
  CHECK(names(profile) == "good");
  REQUIRE(profile.notes.size() == 6);
  CHECK(profile.notes[0] == "mcp.json:2: server \"\" is skipped: its name is empty");
  CHECK(profile.notes[1] ==
        "mcp.json:3: server \"builtin\" is skipped: the name \"builtin\" is reserved");
  CHECK(has(profile.notes[2], "contains the separator \"__\""));
  CHECK(has(profile.notes[3], "letters, digits"));
  CHECK(has(profile.notes[4], "prefix of the separator"));
  CHECK(has(profile.notes[5], "letters, digits"));
}

// A name is used as the name of a cache folder (".." would be the state folder) and as an argument
// in commands that users copy ("--yes" would be an option).
TEST_CASE("names that denote another folder or an option are invalid") {
  for (const char *name : {".", "..", ".npm", "-", "--yes", "-rf"}) {
    const Profile profile = good({with({name})});
    CHECK(names(profile).empty());
    REQUIRE(profile.notes.size() == 1);
    CHECK(has(profile.notes[0], "must not begin with '.' or '-'"));
  }
  const auto errors = bad({{"file", "p.toml", "[transports.'..']\nplugin = 'x'\n"}});
  CHECK(has(errors.at(0).what, "must not begin with"));
}

TEST_CASE("bad_names = \"error\" rejects the profile") {
  const auto errors = bad({with({"", "ok", "a__b"}, R"({"bad_names": "error"})")});
  REQUIRE(errors.size() == 2);
  CHECK(errors[0].line == 2);
  CHECK(errors[1].line == 4);
  CHECK(has(errors[0].what, "name"));
  CHECK(has(errors[1].what, "separator"));
}

TEST_CASE("common names are accepted") {
  CHECK(names(good({with({"my-server_v2", "Weather", "9a", "a_b", "a.b", "fetch"})})) ==
        "my-server_v2 Weather 9a a_b a.b fetch");
  CHECK(names(good({with({std::string(64, 'x')})})).size() == 64);
  CHECK(names(good({with({std::string(65, 'x')})})).empty());
}

TEST_CASE("strict_names restricts server names") {
  const std::vector<std::string> refused = {"Weather",  "9a",    "a_b",  "fs-read",
                                            "fs-write", "fetch", "ha:x", "host:x"};
  const auto errors = bad({with(refused, R"({"names": "strict", "bad_names": "error"})")});
  CHECK(errors.size() == refused.size());
  const Profile profile = good({with({"Weather", "weather-2", "fetch"}, R"({"names": "strict"})")});
  CHECK(names(profile) == "weather-2");
  CHECK(profile.notes.size() == 2);
}

TEST_CASE("the separator must not appear in a name") {
  CHECK(names(good({with({"a__b", "a_b"}, R"({"separator": ":"})")})) == "a__b a_b");
  CHECK(names(good({with({"a_b", "ab"}, R"({"separator": "_"})")})) == "ab");
  CHECK(names(good({with({"a__b"}, R"({"prefix": "never"})")})) == "a__b");
}
