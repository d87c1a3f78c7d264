#include "shared/local_clients.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/test_folder.hpp"
#include "mcp/scan.hpp"
#include "service/join_json.hpp"
#include "shared/profile_marks.hpp"

using namespace bulkhead;
using namespace bulkhead::program;

namespace {

constexpr std::uint64_t loaded_ms = 4711;

struct World {
  TestFolder folder;
  std::string socket = folder.path + "/77-1.sock";
  LocalClients clients{socket};
  Profile profile;
  World() {
    ServerDef def;
    def.name = "one";
    def.type = "http";
    def.url = "https://example.com/mcp";
    def.headers = {{"Authorization", "Bearer s3cr3t"}};
    profile.servers = {def};
  }
  void listens() { std::ofstream(local_socket_path(socket)) << ""; }
  static std::string request(const Profile &of) {
    const std::string key(mark_key_bytes, 'k');
    return to_bytes(JoinRequest{key, marks_of(of, "/", key)});
  }
};

class Variable {
 public:
  Variable(const char *name, const std::string &value)
      : name_(name), before_(std::getenv(name) == nullptr ? "" : std::getenv(name)) {
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() { ::setenv(name_, before_.c_str(), 1); }
  Variable(const Variable &) = delete;
  Variable &operator=(const Variable &) = delete;

 private:
  const char *name_;
  const std::string before_;
};

std::string message_of(const ServiceAnswer &answer) {
  Refusal refusal;
  REQUIRE(from_bytes(answer.value, &refusal));
  return refusal.message;
}

}  // namespace

TEST_CASE("the transport is optional and listens in the directory of the service socket") {
  World world;
  world.clients.add_to(world.profile);
  REQUIRE(world.profile.transports.size() == 1);
  const PluginUse &use = world.profile.transports.front();
  CHECK_FALSE(use.required);
  CHECK(mcp::member(use.config_json, "listen") ==
        "\"unix:" + world.folder.path + "/77-1.clients\"");
  CHECK(mcp::member(use.config_json, "local_token").size() == 32 + 2);
  LocalClients other{world.socket};
  Profile profile;
  other.add_to(profile);
  CHECK(profile.transports.front().config_json != use.config_json);
}

TEST_CASE("a program with an equal profile gets the transport's token") {
  World world;
  world.listens();
  const ServiceAnswer answer =
      world.clients.answer(World::request(world.profile), world.profile, loaded_ms, false);
  REQUIRE(answer.code == BH_OK);
  JoinAnswer joined;
  REQUIRE(from_bytes(answer.value, &joined));
  CHECK(joined.path == local_socket_path(world.socket));
  world.clients.add_to(world.profile);
  CHECK(world.profile.transports.front().config_json.find(joined.token) != std::string::npos);
}

TEST_CASE("the reason names the folder and its servers") {
  World world;
  world.listens();
  for (const char *name : {"files", "git"}) {
    ServerDef def;
    def.name = name;
    def.type = "stdio";
    def.command = "/usr/bin/server";
    world.profile.servers.push_back(def);
  }
  const std::string here = std::filesystem::current_path().string();
  const auto answer_to = [&](const Profile &other) {
    return message_of(world.clients.answer(World::request(other), world.profile, loaded_ms, false));
  };
  CHECK(answer_to(world.profile) ==
        "its configuration differs: working directory; it was started in " + here +
            ", where these servers run unless \"cwd\" is set: files, git");
  Profile other = world.profile;
  for (std::size_t i : {1, 2}) other.servers[i].cwd = "/";
  CHECK(answer_to(other) ==
        "its configuration differs: server files (its definition or a variable in it), server git "
        "(its definition or a variable in it), working directory; it was started in " +
            here + ", where these servers run unless \"cwd\" is set: files, git");
}

TEST_CASE("the reason names the command that puts a rebuilt plugin into use") {
  World world;
  world.listens();
  PluginUse tools, policy;
  tools.id = "mine";
  tools.plugin = "./mine.so";
  tools.file.mark = "1";
  policy.id = "guard";
  policy.plugin = "./guard.so";
  world.profile.tools.push_back(tools);
  world.profile.policies.push_back(policy);
  Profile other = world.profile;
  other.tools[0].file.mark = "2";
  const auto answer_to = [&](const Profile &theirs) {
    return message_of(
        world.clients.answer(World::request(theirs), world.profile, loaded_ms, false));
  };
  const std::string message = answer_to(other);
  CHECK(message.find("tools mine") != std::string::npos);
  CHECK(message.find("`bulkhead plugin swap mine`") != std::string::npos);
  CHECK(message.find("swap guard") == std::string::npos);
  other = world.profile;
  other.policies[0].file.mark = "2";
  CHECK(answer_to(other).find("`bulkhead plugin swap guard`") != std::string::npos);
  other.policies.clear();  // the plugin is not the same with another file
  CHECK(answer_to(other).find("swap guard") == std::string::npos);
}

TEST_CASE("a program with a different profile gets the names of the differing parts and no token") {
  World world;
  world.listens();
  Profile other = world.profile;
  other.servers[0].headers["Authorization"] = "Bearer other";
  other.pins.mode =
      other.pins.mode == PinRules::Mode::off ? PinRules::Mode::enforce : PinRules::Mode::off;
  const ServiceAnswer answer =
      world.clients.answer(World::request(other), world.profile, loaded_ms, false);
  CHECK(answer.code == BH_E_DENIED);
  CHECK(message_of(answer) ==
        "its configuration differs: pins, server one (its definition or a variable in it)");
  Refusal refusal;
  REQUIRE(from_bytes(answer.value, &refusal));
  CHECK(refusal.parts == std::vector<std::string>{"pins", "server one"});
  CHECK(refusal.loaded_ms == loaded_ms);
  world.clients.add_to(other);
  const std::string token = other.transports.front().config_json.substr(
      other.transports.front().config_json.find("local_token") + 14, 32);
  CHECK(answer.value.find(token) == std::string::npos);
}

TEST_CASE(
    "the reason names the programs that PATH selects in the gateway, and servers on one side") {
  World world;
  world.listens();
  const Variable path("PATH", world.folder.path + "/a:/usr/bin:/bin");
  for (const char *name : {"shell", "list"}) {
    ServerDef def;
    def.name = name;
    def.type = "stdio";
    def.command = def.name == "shell" ? "sh" : "ls";
    def.cwd = "/";
    world.profile.servers.push_back(def);
  }
  ServerDef extra = world.profile.servers.back();
  extra.name = "extra";
  Profile other = world.profile;
  other.servers.push_back(extra);
  std::filesystem::create_directory(world.folder.path + "/a");
  const std::string request = World::request(other);
  for (const char *name : {"sh", "ls"}) {
    const std::string file = world.folder.path + "/a/" + name;
    std::ofstream(file) << "#!/bin/sh\n";
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
  }
  const std::string shown =
      message_of(world.clients.answer(request, world.profile, loaded_ms, false));
  const std::string folder = world.folder.path + "/a/";
  CHECK(shown ==
        "its configuration differs: program of server list, program of server shell, server extra "
        "(not in the gateway); in the gateway, PATH selects " +
            folder + "sh for server shell; in the gateway, PATH selects " + folder +
            "ls for server list");
}

TEST_CASE("the reason names the variable that the gateway does not have") {
  World world;
  world.listens();
  Profile there = world.profile;
  for (const char *name : {"keyed", "named"}) {
    ServerDef def;
    def.name = name;
    def.type = "stdio";
    def.command = "/usr/bin/server";
    def.cwd = "/";
    there.servers.push_back(def);
    def.disabled = def.unmet = true;
    def.disabled_reason = "the environment variable KEY is not set";
    world.profile.servers.push_back(def);
  }
  const std::string shown =
      message_of(world.clients.answer(World::request(there), world.profile, loaded_ms, false));
  for (const std::string name : {"keyed", "named"}) {
    CHECK(shown.find("; in the gateway, server " + name +
                     " is disabled: the environment variable KEY is not set; variables are read "
                     "from the gateway's own environment: restart the gateway") !=
          std::string::npos);
  }
}

TEST_CASE("the response that rejects a request is written and parsed without loss") {
  const Refusal refusal{"it \"differs\"", {}, {"server a", "program of server b"}, 1234567890123};
  const Refusal read = read_join_refusal(join_refusal_json(refusal));
  CHECK(read.message == refusal.message);
  CHECK(read.parts == refusal.parts);
  CHECK(read.loaded_ms == refusal.loaded_ms);
  for (const char *bad : {"", "[]", "{\"parts\":1}"}) CHECK(read_join_refusal(bad).parts.empty());
}

TEST_CASE("no program can join while the transport does not listen") {
  World world;
  const ServiceAnswer answer =
      world.clients.answer(World::request(world.profile), world.profile, loaded_ms, false);
  CHECK(answer.code == BH_E_DENIED);
  CHECK(message_of(answer) == "it has no socket for local clients");
}

TEST_CASE("a gateway that is starting says so, and rejects a different profile at once") {
  World world;
  const auto ask = [&](const Profile &profile) {
    return world.clients.answer(World::request(profile), world.profile, loaded_ms, true);
  };
  const ServiceAnswer answer = ask(world.profile);
  CHECK(answer.code == BH_E_UNAVAILABLE);
  CHECK(message_of(answer) == gateway_is_starting);
  Profile other = world.profile;
  other.servers.push_back(other.servers.front());
  other.servers.back().name = "different";
  CHECK(ask(other).code == BH_E_DENIED);
}

TEST_CASE("invalid requests are rejected") {
  World world;
  world.listens();
  CHECK(world.clients.answer("", world.profile, loaded_ms, false).code == BH_E_INVALID);
  CHECK(world.clients.answer("garbage", world.profile, loaded_ms, false).code == BH_E_INVALID);
  JoinRequest request{"short", {}};
  CHECK(world.clients.answer(to_bytes(request), world.profile, loaded_ms, false).code ==
        BH_E_INVALID);
  request.key = std::string(mark_key_bytes, 'k');
  for (std::size_t i = 0; i <= max_marks; ++i) request.marks[std::to_string(i)] = "x";
  CHECK(world.clients.answer(to_bytes(request), world.profile, loaded_ms, false).code ==
        BH_E_INVALID);
}

TEST_CASE("the body of POST /join is written and parsed without loss") {
  JoinRequest request{std::string(mark_key_bytes, 'k'),
                      {{"server \"a\"\n", "00"}, {"limits", "11"}}};
  const auto read = read_join_request(join_request_json(request));
  REQUIRE(read);
  CHECK(read->key == request.key);
  CHECK(read->marks == request.marks);
  for (const char *bad :
       {"", "[]", "{}", R"({"key":"k","marks":{}})", R"({"marks":[]})", "{\"key\""}) {
    INFO(bad);
    CHECK_FALSE(read_join_request(bad));
  }
  CHECK_FALSE(read_join_answer("{}"));
  CHECK_FALSE(read_join_answer(R"({"path":"/x"})"));
  const auto answer = read_join_answer(R"({"path":"/x","token":"T"})");
  REQUIRE(answer);
  CHECK(answer->path == "/x");
  CHECK(answer->token == "T");
}
