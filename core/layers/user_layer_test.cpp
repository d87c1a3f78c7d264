// Tests the profile layer that the connector API writes.
#include "layers/user_layer.hpp"

#include <catch2/catch.hpp>

#include "layers/load.hpp"

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

Result<std::string> added(const std::string &to, std::string_view definition) {
  const auto entry = read_server_entry(definition);
  REQUIRE(entry.has_value());
  return with_server(layer(to), *entry);
}

}  // namespace

TEST_CASE("adding and removing servers leaves the rest of the user layer unchanged") {
  auto text = added("", R"({"id":"a","command":"x","allowed_tools":[]})");
  REQUIRE(text.has_value());
  CHECK_FALSE(loaded(*text).servers.at(0).allow_tools.has_value());
  text = added(*text, R"({"id":"b","url":"http://h/","allowed_tools":["t"]})");
  REQUIRE(text.has_value());
  const Profile both = loaded(*text);
  REQUIRE(both.servers.size() == 2);
  CHECK(both.servers[0].name == "a");
  CHECK(both.servers[1].allow_tools == std::vector<std::string>{"t"});
  CHECK(added(*text, R"({"id":"a","command":"y"})").error().code == BH_E_DENIED);
  CHECK(without_server(layer(*text), "c").error().code == BH_E_NOT_FOUND);
  text = without_server(layer(*text), "a");
  REQUIRE(text.has_value());
  CHECK(loaded(*text).servers.at(0).name == "b");
  // If the user's file has another name for the server section, adding a server keeps the section's
  // servers and all other sections.
  text = added(R"({"servers":{"m":{"command":"x"}},"naming":{"separator":":"}})",
               R"({"id":"n","command":"y"})");
  REQUIRE(text.has_value());
  CHECK(loaded(*text).servers.size() == 2);
  CHECK(loaded(*text).naming.separator == ":");
}

TEST_CASE("a tool list that is not a list is rejected, not ignored") {
  CHECK_FALSE(loaded(*added("", R"({"id":"a","command":"x","allowed_tools":null})"))
                  .servers.at(0)
                  .allow_tools.has_value());
  for (const char *tools : {"\"read\"", "\"\"", "0", "true", "{}", R"({"read":true})"}) {
    INFO(tools);
    const auto text =
        added("", R"({"id":"a","command":"x","allowed_tools":)" + std::string(tools) + "}");
    if (!text.has_value()) continue;
    const auto profile = load_profile({layer(*text)}, environment({}));
    const auto *errors = std::get_if<std::vector<ProfileError>>(&profile);
    REQUIRE(errors != nullptr);
    CHECK(errors->front().path.find("allowTools") != std::string::npos);
  }
}

TEST_CASE("a definition is stored as it was sent") {
  const auto text =
      added("", R"({"id":"a","command":"x","args":["-n","\u00e9\""],"env":{"A":"1","B":""},)"
                R"("timeout":1.5e3,"sandbox":{"mode":"off"},"enabled":false,"x":null})");
  REQUIRE(text.has_value());
  CHECK(text->find(R"({"command":"x","args":["-n","é\""],"env":{"A":"1","B":""},)"
                   R"("timeout":1.5e3,"sandbox":{"mode":"off"},"enabled":false,"x":null})") !=
        std::string::npos);
}

TEST_CASE("an invalid definition is rejected, and an invalid layer is not changed") {
  const std::string long_list = R"({"id":"a","args":[)" + std::string(20'000, '0') + "]}";
  std::string many = R"({"id":"a","args":[0)";
  for (std::size_t i = 0; i < ServerEntry::max_values; ++i) many += ",0";
  const std::string deep =
      R"({"id":"a","x":)" + std::string(100, '[') + std::string(100, ']') + "}";
  for (const std::string &bad :
       {std::string(), std::string("[]"), std::string("{"), std::string(R"({"command":"x"})"),
        std::string(R"({"id":7})"), std::string(R"({"id":""})"), long_list, many + "]}", deep}) {
    INFO(bad.substr(0, 80));
    CHECK(read_server_entry(bad).error().code == BH_E_INVALID);
  }
  CHECK_FALSE(added("{", R"({"id":"a","command":"x"})").has_value());
  CHECK_FALSE(without_server(layer("[1]"), "a").has_value());
}

TEST_CASE("an entry that another process has damaged is rejected") {
  const ServerEntry good = *read_server_entry(R"({"id":"a","args":["x",1],"env":{"A":"b"}})");
  REQUIRE(with_server(layer(""), good).has_value());
  const auto refused = [&](auto damage) {
    ServerEntry entry = good;
    damage(entry.values);
    return with_server(layer(""), entry).error().code == BH_E_INVALID;
  };
  using Values = std::vector<ServerEntry::Value>;
  CHECK(refused([](Values &values) { values.clear(); }));
  CHECK(refused([](Values &values) { values.pop_back(); }));
  CHECK(refused([](Values &values) { values.push_back(values.back()); }));
  CHECK(refused([](Values &values) { values.front().kind = values.at(2).kind; }));
  CHECK(refused([](Values &values) { values.at(1).size = 0xffffffff; }));
  CHECK(refused([](Values &values) { values.at(2).kind = 99; }));
  CHECK(refused([](Values &values) { values.at(2).size = 1; }));
  CHECK(refused([](Values &values) { values.at(3).text = "1],\"command\":[1"; }));
  CHECK(refused([](Values &values) { values.resize(ServerEntry::max_values + 1, values.back()); }));
  CHECK(refused([](Values &values) {  // too deeply nested
    values.assign(1'000, values.front());
    for (ServerEntry::Value &value : values) value.size = 1;
  }));
}

TEST_CASE("a displayed definition contains no credential") {
  ServerDef def;
  def.name = "a";
  def.type = "stdio";
  def.command = "x";
  def.args = {"--token", "canary", "--plain", "value"};
  def.env = {{"SECRET", "canary"}};
  CHECK(masked_json(def) ==
        R"({"type":"stdio","command":"x","args":["--token","***","--plain","value"],)"
        R"("env":{"SECRET":"***"},"enabled":true})");
  def.sandbox = {SandboxMode::strict, {"/r"}, {"/w"}, false, 1 << 24, 7};
  def.lazy = true;
  def.pool_size = 2;
  def.pool_safe_tools = {"t"};
  def.timeout_ms = 5;
  def.tool_timeouts_ms = {{"slow", 9}};
  def.session = SessionScope::per_client;
  def.compartment = "own";
  CHECK(masked_json(def).ends_with(
      R"("env":{"SECRET":"***"},"sandbox":"strict","sandbox_paths":{"read":["/r"],"write":["/w"]},)"
      R"("network":false,"memory_bytes":16777216,"processes":7,"start":"lazy","pool_size":2,)"
      R"("pool_safe_tools":["t"],"timeout_ms":5,"tool_timeouts":{"slow":9},)"
      R"("session":"per-client","compartment":"own","enabled":true})"));
  ServerDef shares;
  shares.type = "stdio";
  shares.command = "x";
  shares.sandbox.host_ipc = true;
  CHECK(masked_json(shares) ==
        R"({"type":"stdio","command":"x","sandbox":{"mode":"home-read-only","ipc":"host"},)"
        R"("enabled":true})");
  ServerDef web;
  web.type = "http";
  web.url = "https://u:canary@h/p?key=canary";
  web.headers = {{"Authorization", "Bearer canary"}};
  web.disabled = true;
  const std::string json = masked_json(web);
  CHECK(json.find("canary") == std::string::npos);
  CHECK(json.find(R"("enabled":false)") != std::string::npos);
}
