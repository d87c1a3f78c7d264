// The layer that the connector API writes.
#include "profile/user_layer.hpp"

#include <catch2/catch.hpp>

using namespace bulkhead;

namespace {

ProfileLayer layer(std::string text) {
  return {"user", "connectors.json", std::move(text)};
}

Profile loaded(const std::string &text) {
  const ProfileEnvironment environment{[](const std::string &) { return std::nullopt; }, "/home/x"};
  auto profile = load_profile({layer(text)}, environment);
  REQUIRE(std::holds_alternative<Profile>(profile));
  return std::get<Profile>(std::move(profile));
}

}  // namespace

TEST_CASE("servers are added to and taken from the user layer, and the rest of it stays") {
  std::string name;
  auto text = with_server(layer(""), R"({"id":"a","command":"x","allowed_tools":[]})", &name);
  REQUIRE(text.has_value());
  CHECK(name == "a");
  CHECK_FALSE(loaded(*text).servers.at(0).allow_tools.has_value());
  text = with_server(layer(*text), R"({"id":"b","url":"http://h/","allowed_tools":["t"]})", &name);
  REQUIRE(text.has_value());
  const Profile both = loaded(*text);
  REQUIRE(both.servers.size() == 2);
  CHECK(both.servers[1].allow_tools == std::vector<std::string>{"t"});
  CHECK(with_server(layer(*text), R"({"id":"a","command":"y"})", &name).error().code ==
        BH_E_DENIED);
  CHECK(without_server(layer(*text), "c").error().code == BH_E_NOT_FOUND);
  text = without_server(layer(*text), "a");
  REQUIRE(text.has_value());
  CHECK(loaded(*text).servers.at(0).name == "b");
  // What a person has written beside it, in another spelling of the section.
  text = with_server(layer(R"({"servers":{"m":{"command":"x"}},"naming":{"separator":":"}})"),
                     R"({"id":"n","command":"y"})", &name);
  REQUIRE(text.has_value());
  CHECK(loaded(*text).servers.size() == 2);
  CHECK(loaded(*text).naming.separator == ":");
}

TEST_CASE("what is no definition is refused, and a broken layer is left alone") {
  std::string name;
  for (const char *bad : {"", "[]", "{", R"({"command":"x"})", R"({"id":7})", R"({"id":""})"}) {
    INFO(bad);
    CHECK_FALSE(with_server(layer(""), bad, &name).has_value());
  }
  CHECK_FALSE(with_server(layer("{"), R"({"id":"a","command":"x"})", &name).has_value());
  CHECK_FALSE(without_server(layer("[1]"), "a").has_value());
}

TEST_CASE("a definition for people holds no credential") {
  ServerDef def;
  def.name = "a";
  def.type = "stdio";
  def.command = "x";
  def.args = {"--token", "canary", "--plain", "value"};
  def.env = {{"SECRET", "canary"}};
  CHECK(masked_json(def) ==
        R"({"type":"stdio","command":"x","args":["--token","***","--plain","value"],)"
        R"("env":{"SECRET":"***"},"enabled":true})");
  ServerDef web;
  web.type = "http";
  web.url = "https://u:canary@h/p?key=canary";
  web.headers = {{"Authorization", "Bearer canary"}};
  web.disabled = true;
  const std::string json = masked_json(web);
  CHECK(json.find("canary") == std::string::npos);
  CHECK(json.find(R"("enabled":false)") != std::string::npos);
}
