#include "sources/profile_source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <fstream>

#include "common/paths.hpp"
#include "common/test_folder.hpp"
#include "layers/load.hpp"
#include "layers/project.hpp"
#include "mcp/scan.hpp"
#include "profile/protected_paths.hpp"
#include "sources/approval_store.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

// Provides a configuration directory without a default profile. If `text` is not empty, --config
// names a file with this content.
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

TEST_CASE("without configuration there are builtin servers and one transport") {
  Setting setting;
  const Profile served = setting.load(Transports::served);
  CHECK(ids(served.transports) == "http ");
  CHECK(listen_of(served.transports[0]) == "\"127.0.0.1:8808\"");
  CHECK(served.tools.size() == 2);
  CHECK(served.connectors.at("sse") == "connector-http");
  CHECK_FALSE(served.state_dir.empty());
  REQUIRE(served.plugin_dirs.size() == 2);
  CHECK(served.plugin_dirs[1] == user_plugin_dir());
  CHECK(served.plugin_trust.program_dir == served.plugin_dirs[0]);
  CHECK(ids(setting.load(Transports::stdio).transports) == "stdio ");
  CHECK(setting.load(Transports::none).transports.empty());
}

TEST_CASE("a file's servers replace the builtin servers but not the transport") {
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

TEST_CASE("a connect timeout in the file applies to all servers") {
  const std::string server = "[mcpServers.a]\ncommand = \"npx\"\n";
  for (const char *time : {"7000", "10000"}) {  // the second is the default
    Setting setting(std::string("[limits]\nconnect_timeout_ms = ") + time + "\n" + server);
    CHECK(setting.load(Transports::served).servers[0].connect_timeout_ms == std::nullopt);
  }
  Setting setting("[limits]\ntimeout_ceiling_ms = 60000\n" + server);
  CHECK(setting.load(Transports::served).servers[0].connect_timeout_ms == 60'000);
}

TEST_CASE("--listen applies to the HTTP transport, whatever its name") {
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

TEST_CASE("--listen is rejected if there are several HTTP transports") {
  Setting setting(
      "[transports.a]\nplugin = \"transport-http\"\nlisten = \"127.0.0.1:1\"\n"
      "[transports.b]\nplugin = \"transport-http\"\nlisten = \"127.0.0.1:2\"\n"
      "[transports.c]\nplugin = \"transport-stdio\"\n");
  CHECK(ids(setting.load(Transports::served).transports) == "a b ");
  CHECK(ids(setting.load(Transports::stdio).transports) == "c ");
  setting.arguments.listen = "127.0.0.1:0";
  const auto loaded = load_for(setting.arguments, Transports::served);
  REQUIRE_FALSE(loaded);
  CHECK(loaded.error().front().starts_with("--listen requires exactly one HTTP transport"));

  Setting one(
      "[transports.guest]\nplugin = \"transport-vsock\"\n"
      "[transports.web]\nplugin = \"transport-http\"\n");
  one.arguments.listen = "127.0.0.1:0";
  const Profile profile = one.load(Transports::served);
  REQUIRE(ids(profile.transports) == "guest web ");
  CHECK(listen_of(profile.transports[1]) == "\"127.0.0.1:0\"");

  Setting none("[transports.guest]\nplugin = \"transport-vsock\"\n");
  none.arguments.listen = "127.0.0.1:0";
  CHECK_FALSE(load_for(none.arguments, Transports::served));
}

TEST_CASE("each error is reported on its own line") {
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

TEST_CASE("the default file is read if it exists") {
  Setting setting;
  std::filesystem::create_directory(setting.folder / "bulkhead");
  std::ofstream(setting.folder / "bulkhead/profile.toml") << "[mcpServers.a]\ncommand = \"x\"\n";
  const auto loaded = load_for(setting.arguments, Transports::served);
  REQUIRE(loaded);
  CHECK(loaded->file == setting.folder / "bulkhead/profile.toml");
  CHECK(loaded->profile.servers.size() == 1);
  CHECK(loaded->profile.tools.empty());
}

TEST_CASE("the builtin file tools are disabled in the home directory") {
  const Setting setting;
  const auto before = std::filesystem::current_path();
  const char *was = std::getenv("HOME");
  const std::string home = was == nullptr ? "" : was;
  const auto tools_in = [&](const std::filesystem::path &folder) {
    std::filesystem::create_directories(folder);
    std::filesystem::current_path(folder);
    const auto loaded = load_for(Arguments(), Transports::served);
    std::filesystem::current_path(before);
    REQUIRE(loaded);
    return ids(loaded->profile.tools) + (loaded->profile.notes.empty() ? "" : "noted");
  };
  const std::filesystem::path own = setting.folder / "home";
  std::filesystem::create_directories(own);
  ::setenv("HOME", own.c_str(), 1);
  CHECK(tools_in(own) == "http noted");
  CHECK(tools_in(own.parent_path()) == "http noted");
  CHECK(tools_in("/") == "http noted");
  CHECK(tools_in(own / "project") == "http files ");
  CHECK(tools_in(setting.folder / "homework") == "http files ");
  ::setenv("HOME", home.c_str(), 1);
}

TEST_CASE("the effective state directory is shown") {
  const Setting setting;
  ::setenv("XDG_STATE_HOME", (setting.folder / "elsewhere").c_str(), 1);
  const auto loaded = load_for(Arguments(), Transports::served);
  ::unsetenv("XDG_STATE_HOME");
  REQUIRE(loaded);
  CHECK(loaded->profile.state_dir == setting.folder / "elsewhere/bulkhead");
  const auto &shown = loaded->profile.shown;
  const auto at = std::find_if(shown.begin(), shown.end(),
                               [](const auto &each) { return each.path == "state_dir"; });
  REQUIRE(at != shown.end());
  CHECK(at->value.ends_with("elsewhere/bulkhead"));
}

namespace {

// Provides a working directory with a project file, and a private approval store.
struct ProjectSetting : Setting {
  explicit ProjectSetting(const std::string &text, const std::string &name = ".mcp.json") {
    ::setenv("XDG_STATE_HOME", (folder / "state").c_str(), 1);
    before = std::filesystem::current_path();
    std::filesystem::create_directory(folder / "repo");
    std::filesystem::current_path(folder / "repo");
    std::ofstream(name) << text;
    file = std::filesystem::canonical(folder / "repo").string() + "/" + name;
  }
  ~ProjectSetting() {
    std::filesystem::current_path(before);
    ::unsetenv("XDG_STATE_HOME");
  }
  void approve(const std::string &server) const {
    auto read = read_project(*read_project_file(file));
    for (const auto &entry : std::get<std::vector<ProjectEntry>>(read)) {
      if (entry.name != server) continue;
      Approval approval;
      approval.file = file;
      approval.server = server;
      approval.digest = entry.digest;
      REQUIRE(ApprovalStore().put(approval));
    }
  }
  std::filesystem::path before;
  std::string file;
};

std::string all_of(const std::vector<std::string> &texts) {
  std::string out;
  for (const auto &text : texts) out += text + "\n";
  return out;
}

}  // namespace

TEST_CASE(
    "F07 servers in the working directory's project file are listed, and used once approved") {
  ProjectSetting setting(R"({"mcpServers": {"a": {"command": "npx"}, "b": {"command": "npx"}}})");
  auto loaded = load_for(setting.arguments, Transports::served);
  REQUIRE(loaded);
  CHECK(loaded->project == setting.file);
  CHECK(loaded->file.empty());
  CHECK(loaded->profile.tools.size() == 2);  // the builtin tools remain
  REQUIRE(loaded->profile.servers.size() == 2);
  CHECK(loaded->profile.servers[0].disabled);
  CHECK(all_of(loaded->profile.notes)
            .find("not approved: run bulkhead approve --project " + setting.file + " -- a") !=
        std::string::npos);
  setting.approve("b");
  setting.arguments.listen = "127.0.0.1:0";  // makes the loader run twice
  const Profile profile = setting.load(Transports::served);
  REQUIRE(profile.servers.size() == 2);
  CHECK(profile.servers[0].name == "b");
  CHECK_FALSE(profile.servers[0].disabled);
  CHECK(profile.servers[1].disabled);
  setting.arguments.no_project = true;
  CHECK(setting.load(Transports::stdio).servers.empty());
}

TEST_CASE("project files are searched in order") {
  ProjectSetting setting(R"({"mcpServers": {"json": {"command": "x"}}})");
  const auto server = [&] { return setting.load(Transports::none).servers.at(0).name; };
  CHECK(server() == "json");
  std::ofstream(".bulkhead.toml") << "mcpServers.toml.command = 'x'\n";
  CHECK(server() == "toml");
  setting.arguments.project = ".mcp.json";
  CHECK(server() == "json");
  setting.arguments.project = "../repo/../repo/.mcp.json";
  CHECK(load_for(setting.arguments, Transports::none)->project == setting.file);
  // A file named by --config does not count as a project file.
  setting.arguments.project.clear();
  std::filesystem::remove(".bulkhead.toml");
  setting.arguments.config = setting.file;
  CHECK(load_for(setting.arguments, Transports::none)->project.empty());
  CHECK_FALSE(setting.load(Transports::none).servers.at(0).disabled);
}

TEST_CASE("a file may set a single key of a builtin transport") {
  Setting setting(
      "[transports.http]\nlisten = \"127.0.0.1:1\"\n[transports.stdio]\nenabled = true\n");
  CHECK(setting.load(Transports::none).transports.empty());
  CHECK(ids(setting.load(Transports::stdio).transports) == "stdio ");
  const Profile served = setting.load(Transports::served);
  CHECK(ids(served.transports) == "http ");
  for (const auto &shown : Setting().load(Transports::served).shown)
    CHECK_FALSE(shown.path.starts_with("transports.stdio"));
  const auto aggregator = load_aggregator(setting.arguments);
  REQUIRE(aggregator);
  CHECK(ids(aggregator->profile.transports) == "aggregator ");
}

TEST_CASE("with stdio, the first list waits longer by default") {
  Setting none("");
  CHECK(none.load(Transports::stdio).limits.first_list_wait_ms == 8'000);
  CHECK(none.load(Transports::served).limits.first_list_wait_ms == 5'000);
  Setting some("[limits]\nfirst_list_wait_ms = 100\n");
  CHECK(some.load(Transports::stdio).limits.first_list_wait_ms == 100);
}

TEST_CASE("an invalid approved server is an error only with --project") {
  ::unsetenv("BH_TEST_UNSET");
  ProjectSetting setting(R"({"mcpServers": {
      "bad": {"command": "x", "env": {"A": "${BH_TEST_UNSET}"}, "timeout": -1},
      "good": {"command": "x"}}})");
  setting.approve("bad");
  setting.approve("good");
  const Profile profile = setting.load(Transports::served);
  REQUIRE(profile.servers.size() == 2);
  CHECK(profile.servers[0].disabled);
  CHECK(
      profile.servers[0].disabled_reason.starts_with("its definition is invalid: mcpServers.bad."));
  CHECK_FALSE(profile.servers[1].disabled);
  CHECK(all_of(profile.notes).find("\"bad\" is disabled: its definition is invalid") !=
        std::string::npos);
  setting.arguments.project = setting.file;
  CHECK_FALSE(load_for(setting.arguments, Transports::served));
}

TEST_CASE("a connector added to one gateway does not invalidate another profile") {
  ::unsetenv("BH_TEST_UNSET");
  Setting setting("[tools.taken]\nplugin = 'builtin-http'\n[mcpServers.mine]\ncommand = 'x'\n");
  const std::string user = R"({"mcpServers": {"taken": {"command": "x"},
      "old": {"command": "x", "env": {"A": "${BH_TEST_UNSET}"}}}})";
  const auto loaded = load_for(setting.arguments, Transports::served, user);
  REQUIRE(loaded);
  const Profile &profile = loaded->profile;
  CHECK(ids(profile.tools) == "taken ");
  REQUIRE(profile.servers.size() == 2);
  for (const auto &server : profile.servers) CHECK(server.disabled == (server.name == "old"));
  CHECK(all_of(profile.notes).find("\"taken\" is skipped: a tools plugin") != std::string::npos);
}

TEST_CASE("an invalid project file is an error only with --project") {
  ProjectSetting setting("{");
  const Profile profile = setting.load(Transports::served);
  CHECK(all_of(profile.notes).find("the project file is ignored: ") != std::string::npos);
  CHECK(profile.servers.empty());
  setting.arguments.project = setting.file;
  CHECK_FALSE(load_for(setting.arguments, Transports::served));
  // A project file that is not a regular file is not an error either.
  std::filesystem::remove(setting.file);
  REQUIRE(::mkfifo(setting.file.c_str(), 0600) == 0);
  setting.arguments.project.clear();
  CHECK(all_of(setting.load(Transports::served).notes).find("not a regular file") !=
        std::string::npos);
  std::filesystem::remove(setting.file);
  setting.arguments.project = setting.file;
  const auto missing = load_for(setting.arguments, Transports::served);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().front().find("[file_not_found]") != std::string::npos);
}

TEST_CASE("the sockets that transports listen on are hidden from servers") {
  Setting setting(R"(
[transports.web]
plugin = "transport-http"
listen = "unix:/x/mcp.sock"
[transports.guests]
plugin = "transport-vsock"
listen = ["vsock:5002", "hybrid:/x/vm.sock:5002"]
)");
  const auto hidden = all_own_paths(setting.load(Transports::served));
  CHECK(std::count(hidden.begin(), hidden.end(), "/x/mcp.sock") == 1);
  CHECK(std::count(hidden.begin(), hidden.end(), "/x/vm.sock_5002") == 1);
}

TEST_CASE("the targets of links to the gateway's files and plugins are protected, too") {
  Setting setting;
  std::filesystem::create_directories(setting.folder / "dot");
  const std::string dot = std::filesystem::canonical(setting.folder / "dot").string();
  std::ofstream(dot + "/p.toml") << "plugin_dirs = [\"" + (setting.folder / "plugins") + "\"]\n";
  std::filesystem::create_directories(dot + "/plugins");
  std::filesystem::create_symlink("dot/p.toml", setting.folder / "p.toml");
  std::filesystem::create_symlink("dot/plugins", setting.folder / "plugins");
  setting.arguments.config = setting.folder / "p.toml";
  const Profile profile = setting.load(Transports::served);
  const auto lists = [](const std::vector<std::string> &paths, const std::string &path) {
    return std::count(paths.begin(), paths.end(), path) == 1;
  };
  for (const std::string &path : {setting.folder / "p.toml", dot + "/p.toml"}) {
    INFO(path);
    CHECK(lists(profile.own_paths, path));
  }
  for (const std::string &path : {setting.folder / "plugins", dot + "/plugins"}) {
    INFO(path);
    CHECK(lists(all_programs(profile), path));
  }
}

TEST_CASE("the programs of a profile are the executable and all plugins that are loaded by path") {
  Setting setting(R"(
plugin_dirs = ["/x/plugins"]
[transports.web]
plugin = "/x/one/transport-http.so"
[tools.files]
plugin = "/x/two/tools-x.so"
[policies.mine]
plugin = "/x/three/policy-x.so"
)");
  auto loaded = load_to_look(setting.arguments, Transports::served);
  REQUIRE(loaded);
  const auto programs = all_programs(loaded->profile);
  const auto lists = [&](const std::string &path) {
    return std::count(programs.begin(), programs.end(), path) == 1;
  };
  for (const char *path :
       {"/x/plugins", "/x/one/transport-http.so", "/x/two/tools-x.so", "/x/three/policy-x.so"}) {
    INFO(path);
    CHECK(lists(path));
  }
  CHECK(lists(std::filesystem::read_symlink("/proc/self/exe").string()));
  // A reload can change the tools plugins, so their files are in `programs`.
  CHECK(std::count(loaded->profile.programs.begin(), loaded->profile.programs.end(),
                   "/x/two/tools-x.so") == 1);
}

TEST_CASE("a symbolic link in front of .. in a plugin's path has no effect") {
  Setting setting;
  const std::string folder = std::filesystem::canonical(setting.folder.path).string();
  std::filesystem::create_directories(folder + "/real/plugins/sub");
  std::filesystem::create_directory_symlink(folder + "/real/plugins/sub", folder + "/alias");
  setting.arguments.config = folder + "/p.toml";
  setting.arguments.plugin_dirs = {folder + "/alias/../more"};
  const std::string named = "plugin = \"" + folder + "/alias/../held.so\"\n";
  std::ofstream(setting.arguments.config)
      << "plugin_dirs = [\"" + folder + "/alias/../dir\"]\n[tools.mine]\n" + named +
             "[policies.mine]\n" + named + "[connectors]\nodd = \"" + folder +
             "/alias/../odd.so\"\n";
  auto loaded = load_to_look(setting.arguments, Transports::served);
  REQUIRE(loaded);
  const Profile &profile = loaded->profile;
  CHECK(profile.tools.front().plugin == folder + "/held.so");
  CHECK(profile.policies.front().plugin == folder + "/held.so");
  CHECK(profile.connectors.at("odd") == folder + "/odd.so");
  const auto programs = all_programs(profile);
  for (const char *path : {"/held.so", "/odd.so", "/dir", "/more"}) {
    INFO(path);
    CHECK(std::count(programs.begin(), programs.end(), folder + path) > 0);
  }
  for (const std::string &path : programs) CHECK(path.find("..") == path.npos);
}

TEST_CASE("the paths of a profile that is named by a relative path are protected") {
  Setting setting;
  const std::filesystem::path before = std::filesystem::current_path();
  const std::string folder = std::filesystem::canonical(setting.folder.path).string();
  std::filesystem::create_directory(folder + "/x");
  const auto put = [](const std::string &file, const std::string &id, const std::string &more) {
    std::ofstream(file) << "schema = \"capsem.profile.v2\"\nversion = 2\nid = \"" + id +
                               "\"\nrevision = \"2026.0131.1\"\nname = \"n\"\ndescription = "
                               "\"d\"\nbest_for = \"b\"\nprofile_type = \"coding\"\nui = "
                               "\"coding\"\n" +
                               more +
                               "[compatibility]\nmin_binary = \"1.0.0\"\nguest_abi = "
                               "\"capsem-guest-v1\"\n[vm]\n[packages]\n[tools]\n"
                               "[security.capabilities]\nmcp_tools = \"block\"\n";
  };
  put(folder + "/x/main.toml", "main", "extends_profile_id = \"base\"\n");
  std::filesystem::create_directories(folder + "/bulkhead/profiles");
  put(folder + "/bulkhead/profiles/base.toml", "base", "");
  std::filesystem::current_path(folder);
  setting.arguments.config = "x/main.toml";
  const auto loaded = load_to_look(setting.arguments, Transports::served);
  std::filesystem::current_path(before);
  if (!loaded) FAIL(loaded.error().front());
  const std::vector<std::string> paths = all_own_paths(loaded->profile);
  for (const char *path : {"/x/main.toml", "/x/base.toml"}) {
    INFO(path);
    CHECK(std::count(paths.begin(), paths.end(), folder + path) == 1);
  }
}

TEST_CASE("the protected profile is the one that is read: --config with .. and a link, --listen") {
  Setting setting;
  const std::string folder = std::filesystem::canonical(setting.folder.path).string();
  std::filesystem::create_directories(folder + "/real/sub");
  std::filesystem::create_directory_symlink(folder + "/real/sub", folder + "/alias");
  std::ofstream(folder + "/real/p.toml")
      << "[transports.web]\nplugin = \"transport-http\"\n[transports.more]\nplugin = "
         "\"transport-vsock\"\nlisten = \"unix:" +
             folder + "/alias/../s.sock\"\n";
  setting.arguments.config = without_parent_steps(folder + "/alias/../p.toml");
  CHECK(setting.arguments.config == folder + "/real/p.toml");
  CHECK(without_parent_steps(folder + "/real/../alias/p.toml") == folder + "/alias/p.toml");
  CHECK(without_parent_steps(folder + "/missing/../p.toml") == folder + "/missing/../p.toml");
  setting.arguments.listen = "127.0.0.1:1";
  const auto loaded = load_to_look(setting.arguments, Transports::served);
  if (!loaded) FAIL(loaded.error().front());
  const std::vector<std::string> paths = all_own_paths(loaded->profile);
  CHECK(std::count(paths.begin(), paths.end(), folder + "/real/p.toml") == 1);
  CHECK(std::count(paths.begin(), paths.end(), folder + "/real/s.sock") == 1);
  for (const std::string &path : paths) {
    INFO(path);
    CHECK(path.starts_with("/"));
    CHECK(path.find("..") == path.npos);
    CHECK(path.find("--listen") == path.npos);
  }
}
