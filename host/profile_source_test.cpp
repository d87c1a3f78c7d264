#include "profile_source.hpp"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "mcp/scan.hpp"
#include "test_folder.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

// A folder without a default profile; the file given is the one of --config.
struct Setting {
  explicit Setting(const std::string &text = "", const std::string &name = "p.toml") {
    ::setenv("XDG_CONFIG_HOME", folder.path.c_str(), 1);
    if (text.empty()) return;
    arguments.config = folder / name;
    std::ofstream(arguments.config) << text;
  }
  Profile load(Transports transports) {
    auto loaded = load_for(arguments, transports);
    if (!loaded) FAIL(loaded.error().front());
    return loaded->profile;
  }
  TestFolder folder;
  Arguments arguments;
};

std::string ids(const std::vector<PluginUse> &uses) {
  std::string out;
  for (const auto &use : uses) out += use.id + " ";
  return out;
}

std::string listen_of(const PluginUse &use) {
  return std::string(mcp::member(use.config_json, "listen"));
}

}  // namespace

TEST_CASE("with nothing configured there are builtin servers and one transport") {
  Setting setting;
  const Profile served = setting.load(Transports::served);
  CHECK(ids(served.transports) == "http ");
  CHECK(listen_of(served.transports[0]) == "\"127.0.0.1:8808\"");
  CHECK(served.tools.size() == 2);
  CHECK(served.connectors.at("sse") == "connector-http");
  CHECK_FALSE(served.state_dir.empty());
  CHECK(served.plugin_dirs.size() == 1);
  CHECK(ids(setting.load(Transports::stdio).transports) == "stdio ");
  CHECK(setting.load(Transports::none).transports.empty());
}

TEST_CASE("a file's servers replace the builtin ones, not the transport") {
  Setting setting(R"({"mcpServers": {"a": {"command": "npx"}, "b": {"command": "node"},
                      "c": {"command": "npx", "connect_timeout": 5000}}})",
                  "mcp.json");
  const Profile profile = setting.load(Transports::served);
  REQUIRE(profile.servers.size() == 3);
  CHECK(profile.tools.empty());
  CHECK(ids(profile.transports) == "http ");
  CHECK(profile.servers[0].connect_timeout_ms == launcher_connect_ms);
  CHECK(profile.servers[1].connect_timeout_ms == std::nullopt);
  CHECK(profile.servers[2].connect_timeout_ms == 5000);
}

TEST_CASE("a connect time-out of the file holds for all") {
  Setting setting("[limits]\nconnect_timeout_ms = 7000\n[mcpServers.a]\ncommand = \"npx\"\n");
  CHECK(setting.load(Transports::served).servers[0].connect_timeout_ms == std::nullopt);
}

TEST_CASE("--listen reaches the transport, whatever its name") {
  Setting builtin("[mcpServers.a]\ncommand = \"x\"\n");
  builtin.arguments.listen = "127.0.0.1:0";
  CHECK(listen_of(builtin.load(Transports::served).transports[0]) == "\"127.0.0.1:0\"");

  Setting own("[transports.mine]\nplugin = \"transport-http\"\nlisten = \"127.0.0.1:1\"\n");
  CHECK(ids(own.load(Transports::served).transports) == "mine ");
  own.arguments.listen = "127.0.0.1:0";
  const Profile profile = own.load(Transports::served);
  CHECK(ids(profile.transports) == "mine ");
  CHECK(listen_of(profile.transports[0]) == "\"127.0.0.1:0\"");

  Setting same("[transports.http]\nlisten = \"127.0.0.1:1\"\n");
  CHECK(ids(same.load(Transports::served).transports) == "http ");
  CHECK(listen_of(same.load(Transports::served).transports[0]) == "\"127.0.0.1:1\"");
}

TEST_CASE("with several transports --listen would be ambiguous") {
  Setting setting(
      "[transports.a]\nplugin = \"transport-http\"\nlisten = \"127.0.0.1:1\"\n"
      "[transports.b]\nplugin = \"transport-http\"\nlisten = \"127.0.0.1:2\"\n"
      "[transports.c]\nplugin = \"transport-stdio\"\n");
  CHECK(ids(setting.load(Transports::served).transports) == "a b ");
  CHECK(ids(setting.load(Transports::stdio).transports) == "c ");
  setting.arguments.listen = "127.0.0.1:0";
  const auto loaded = load_for(setting.arguments, Transports::served);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().front().starts_with("--listen: "));
}

TEST_CASE("every mistake is a line") {
  Setting setting("[mcpServers.a]\ncomand = \"x\"\n[mcpServers.b]\ncommand = 5\n");
  const auto loaded = load_for(setting.arguments, Transports::served);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().size() >= 2);
  for (const auto &line : loaded.error()) CHECK(line.find("p.toml:") != std::string::npos);
  setting.arguments.config = setting.folder / "missing.toml";
  const auto missing = load_for(setting.arguments, Transports::served);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().front().find("[file_not_found]") != std::string::npos);
}

TEST_CASE("the default file is read when there is one") {
  Setting setting;
  std::filesystem::create_directory(setting.folder / "bulkhead");
  std::ofstream(setting.folder / "bulkhead/profile.toml") << "[mcpServers.a]\ncommand = \"x\"\n";
  const auto loaded = load_for(setting.arguments, Transports::served);
  REQUIRE(loaded);
  CHECK(loaded->file == setting.folder / "bulkhead/profile.toml");
  CHECK(loaded->profile.servers.size() == 1);
  CHECK(loaded->profile.tools.empty());
}
